"""Scoring: the estimates held against published measurements, row by row."""

"""Reasons for defaults: what the code in an assumption means, and its public source."""

from __future__ import annotations

from rackrate.workload.workload import Assumption

REASONS = {
    "usual_network": "what such servers usually have: an adapter a card with switched NVLink (NVIDIA DGX user guides), "
    "100 Gb/s a machine of others; many rented machines have less",
    "bridge_assumed": "a bridge joins these cards; without one PCIe does, and tensor parallelism is slower",
    "most_rented": "the cards that most providers rent out, of those that can do the work",
    "cheapest_holding": "the cheapest card on demand, in whole machines of 1, 2, 4 or 8, that surely holds the work",
    "largest_rented": "no machine by the hour surely holds the work; the largest card that is rented out",
    "fresh_machine": "the machine is new: nothing is cached, so image and model are fetched while the meter runs; "
    "the rates are assumptions named in rackrate.speed.startup",
    "asked_sizes": "the keys that were given belong to this task",
    "no_training_sizes": "no key of training was given",
    "usual_engine": "the engine most used for the task among those that load the format",
    "format_engine": "the engine that the format comes from (ggml-org/ggml docs/gguf.md)",
    "native_dtype": "the type of the checkpoint, FP16 for FP32 checkpoints, as vLLM's dtype 'auto' takes it "
    "(vllm-project/vllm vllm/config/model.py)",
    "quantised_checkpoint": "checkpoints with quantised weights keep the rest, and compute it, in BF16",
    "native_format": "the format that the checkpoint is published in, or the nearest one to it",
    "native_dtype_unknown": "the checkpoint's type is not known; BF16 is what current models are published in",
    "wide_range": "BF16 needs no loss scaling (Kalamkar et al. 2019, arXiv 1905.12322)",
    "same_as_format": "the format that the weights are stored in",
    "same_as_precision": "the type that is computed in",
    "qlora_format": "NF4 with double quantisation, as in QLoRA (Dettmers et al. 2023, arXiv 2305.14314)",
    "smallest_micro_batch": "one sequence at a time needs the least memory; more is faster where it fits",
    "usual_global_batch": "16 sequences, as QLoRA's 7B and 13B runs (arXiv 2305.14314, appendix B)",
    "pretrain_global_batch": "2 Mi tokens a step, as GPT-3 6.7B and 13B (Brown et al. 2020, arXiv 2005.14165)",
    "usual_sequence": "long enough for instruction data, within the model's maximum",
    "pretrain_sequence": "Llama 2's pretraining length (arXiv 2307.09288), within the model's maximum",
    "mean_row": "the mean row must fit: sequences shorter than it would cut most rows",
    "size_not_given": "the size of the data was not given: hours and cost grow in proportion to it",
    "chinchilla": "20 tokens for each parameter (Hoffmann et al. 2022, arXiv 2203.15556)",
    "usual_target": "what the examples of transformers write (examples/pytorch/summarization, max_target_length)",
    "usual_epochs": "the default of transformers (TrainingArguments.num_train_epochs)",
    "usual_row": "a typical instruction with its answer; measure your own",
    "usual_checkpoints": "the default of transformers (TrainingArguments.save_steps)",
    "no_evaluation": "the default of transformers (TrainingArguments.eval_strategy)",
    "usual_evaluation": "a hundredth of the run's tokens, held back",
    "usual_optimizer": "AdamW is the default of the training engines",
    "least_memory": "the activations of long sequences seldom fit otherwise "
    "(PEFT's prepare_model_for_kbit_training turns it on likewise)",
    "pretrain_speed": "recomputing attention alone costs little time (Korthikanti et al. 2022, arXiv 2205.05198)",
    "standard_mixed_precision": "FP32 master weights and moments (Micikevicius et al. 2018, arXiv 1710.03740)",
    "engine_keeps_16bit": "the engine keeps weights, gradients and moments in 16 bits",
    "one_row_a_sequence": "engines pad or bucket rows unless told to pack them",
    "pretrain_packs": "pretraining data is one stream cut into full sequences",
    "usual_lora_rank": "16 is a common choice; quality depends little on it (arXiv 2305.14314, section 4)",
    "all_linear_layers": "adapters on all linear layers match full fine-tuning best (arXiv 2305.14314, section 4)",
    "requests_given": "a number of requests is a batch job",
    "a_service": "no number of requests was given",
    "usual_request": "vLLM's benchmark request, 1024 tokens in and 128 out "
    "(vllm-project/vllm vllm/benchmarks/datasets.py, RandomDataset)",
    "requests_alike": "all requests alike, as in vLLM's random benchmark; chats differ, and their slowest wait longer",
    "draft_checkpoint": "engines read the draft's own checkpoint, most of which have 16 bits; "
    "llama.cpp's drafts are GGUF files like the model's",
    "engine_guesses": "what the engine guesses unless told, or a usual number where it has to be told",
    "engine_beams": "the beams that the engine searches with unless told otherwise",
    "one_window": "one window of Whisper (arXiv 2212.04356, section 2.1)",
    "spoken_window": "about four tokens a second of speech: 160 words a minute, 1.3 tokens each, and marks of time",
    "longest_transcript": "room for the longest transcript of a window that the model writes",
    "square_image": "a square of about a megapixel; where the model resizes images, tokens grow with their area",
    "fills_context": "requests as long as the context asked for",
    "prompt_and_output": "the longest request is the typical one",
    "one_user": "one request at a time; more share each reading of the weights",
    "offline_batch": "enough requests to share each reading of the weights, within the engine's own limit",
    "little_law": "rate x time of one request (Little's law), at the latency targets or else those of "
    "MLPerf Inference's interactive Llama 2 70B: 450 ms and 40 ms a token "
    "(mlcommons/inference_policies inference_rules.adoc)",
    "one_image": "one image at a time needs the least memory",
    "usual_script": "as the training scripts of diffusers (huggingface/diffusers examples: text_to_image, dreambooth)",
    "attention_matrices": "the matrices of attention, as in the training scripts (huggingface/diffusers examples)",
    "usual_image_batch": "4 images a step, as in the examples (huggingface/diffusers examples/text_to_image README)",
    "all_on_card": "every network stays on the card: fastest where it fits",
    "trained_size": "the size that the pipeline was trained for",
    "usual_steps": "what the pipeline is usually run with (huggingface/diffusers, num_inference_steps; model cards)",
    "usual_frames": "what the pipeline is usually run with (huggingface/diffusers, num_frames; model cards)",
    "images_not_counted": "what is copied away was not said; an image is about a megabyte",
    "always_on": "a service that never sleeps",
    "one_month": "the period in which most services are compared",
    "one_session": "the job is done without a break",
    "from_weights": "from the size of the weights and the task",
    "no_data_given": "no data of your own was named; the model's download is counted apart",
    "results_uploaded": "what was trained is copied away once",
    "text_is_small": "generated text is a few bytes a token",
    "disk_released": "the disk is given back when the work is done",
    "work_not_interrupted": "not said to survive an interruption: offers that can be taken away are left out",
    "budget_currency": "the currency of the budget",
    "usual_currency": "most offers are priced in it",
}


def reason_code(assumption: Assumption) -> str:
    """The code of an assumption's reason, without the parameter in parentheses."""
    return assumption.why.partition("(")[0]


def explain(assumption: Assumption) -> str:
    """Why a default was taken, in English, with its source; a parameter follows in brackets."""
    code, _, parameter = assumption.why.partition("(")
    text = REASONS[code]
    return f"{text} [{parameter.removesuffix(')')}]" if parameter else text

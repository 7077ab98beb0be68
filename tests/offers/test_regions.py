import pytest

from rackrate.offers.regions import matches_region


@pytest.mark.parametrize(
    ("query", "region", "country", "groups", "expected"),
    [
        ("us-east-1", "us-east-1", "US", (), True),
        ("US-East", "us-east-1", "US", (), True),
        ("us-east", "us-east4", "US", (), True),
        ("fin", "FIN-03", "FI", (), True),
        ("asia-south", "asia-southeast1", "SG", (), False),  # a prefix ends at a separator or digit
        ("us", "eastus2", "US", (), True),
        ("US", "US", "US", (), True),
        ("us", "north-america", "", ("north-america",), False),  # it may be Canada
        ("na", "north-america", "", ("north-america",), True),
        ("fi", "eu-north1", "FI", ("europe", "eu"), True),
        ("eu", "eu-west-2", "GB", ("europe",), False),  # AWS calls London eu-west-2
        ("europe", "eu-west-2", "GB", ("europe",), True),
        ("uk", "eu-west-2", "GB", ("europe",), True),
        ("eu", "westeurope", "NL", ("europe", "eu"), True),
        ("asia", "cn-beijing", "CN", ("asia",), True),
        ("cn", "cn-beijing", "CN", ("asia",), True),
        ("cn", "ap-hongkong", "HK", ("asia",), False),
        ("cn", "ap-beijing|ap-shanghai", "CN", ("asia",), True),
        ("hk", "na-siliconvalley|ap-hongkong", "US|HK", ("north-america", "asia"), True),
        ("ap-hongkong", "na-siliconvalley|ap-hongkong", "US|HK", (), True),
        ("eu", "", "", (), False),
        ("us", "", "", (), False),
        ("", "us-east-1", "US", (), False),
        ("east coast", "East Coast (NY2)", "US", (), True),
    ],
)
def test_a_place_is_matched_by_what_is_known_of_it(query, region, country, groups, expected):
    assert matches_region(query, region, country, groups) is expected


def test_the_table_filters_by_any_of_several_regions(table, offers):
    inside = table.in_regions(["eu", "tor1"])
    for offer, is_in in zip(offers, inside, strict=True):
        assert is_in == ("eu" in offer.region_groups or offer.region == "tor1"), offer.id
    assert 0 < inside.sum() < len(table)
    assert not table.in_regions([]).any()


def test_an_offer_without_a_region_is_nowhere(table, offers):
    nowhere = ~table.region_known
    assert [offer.region == "" for offer in offers] == nowhere.tolist()
    everywhere = table.in_regions(["us", "cn", "europe", "asia", "na", "oceania", "africa"])
    assert not (everywhere & nowhere).any()
    assert (everywhere | nowhere).all()

"""Parts of files that users write."""

OFFERS = "provider,name,card,gpus,price,currency,term,observed_on"
NEGOTIATED = f"{OFFERS},flags\naws,p4d.24xlarge,A100 40GB SXM4,8,11.5,USD,hour,2026-01-02,negotiated\n"
RULES = "provider,rule_key,value,unit,state,seen_at"
CARDS = "id,vendor,product,architecture,compute_capability,form_factor,memory_type,memory_sold_gb"
CARD = "neo-48,NVIDIA,Neo 48GB,Neo,9.0,PCIe,GDDR7,48"
FACTS = "accelerator,quantity,value,unit,kind,seen_at"
RATES = "base,currency,per_base,on"


def offer(**cells):
    """A price file with one row, changed by ``cells``."""
    row = {
        "provider": "mybox",
        "name": "node 1",
        "card": "rtx4090",
        "gpus": "1",
        "price": "1.2",
        "currency": "USD",
        "term": "hour",
        "observed_on": "2026-11-01",
    } | cells
    return f"{','.join(row)}\n{','.join(row.values())}\n"


def one(found):
    """The only one of several."""
    listed = list(found)
    assert len(listed) == 1, f"{len(listed)} of them"
    return listed[0]

"""Mutations of valid files: bytes, JSON values, archives."""

import copy
import io
import json
import zipfile

STRANGE = [
    *(None, True, -1, 0, 10**30, 1e308, "", "x", [], {}, [[]], [None], {"bin": [0, 1]}),
    *({"float": "inf"}, {"float": "x" * 50}, {"bin": [[], {}, 3]}, "\x00", "\ud800", 2**63),
    *(-(10**400), "\x1b[31m", {"array": 0}, {"a": {"b": [1]}}, 0.5, 2),
]


def mutate_bytes(rng, data, others, pieces):
    """Return the data after up to four mutations."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 0, 2, 4])):
        place = rng.randint(0, len(data))
        run = min(rng.choice([1, 2, 4, 8, 64, 1000]), len(data) - place)
        match rng.randint(0, 6):
            case 0 if place < len(data):
                data[place] ^= 1 << rng.randint(0, 7)
            case 1:
                del data[place : place + run]
            case 2:
                data[place:place] = data[place : place + run] * rng.choice([1, 1, 1, 50])
            case 3:
                data[place : place + run] = rng.choice([b"\x00", b"\xff", b"9", b"["]) * run
            case 4:
                other = rng.choice(others)
                data[place : place + run] = other[place : place + run]
            case 5:
                number = rng.choice([0, 1, 2**31 - 1, 2**32 - 1, len(data)])
                data[place : place + 4] = number.to_bytes(4, "little")
            case _:
                data[place : place + rng.choice([0, run])] = rng.choice(pieces)
    return bytes(data)


def mutate_json(rng, plain):
    """Return a JSON value in which one to three values are strange."""
    plain = copy.deepcopy(plain)
    for _ in range(rng.randint(1, 3)):
        swap(rng, plain)
    return plain


def swap(rng, plain):
    """Replace a value somewhere inside by a strange one."""
    while True:
        keys = list(plain) if isinstance(plain, dict) else list(range(len(plain)))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(plain[key], dict | list) or rng.random() < 0.2:
            if isinstance(plain, dict) and rng.random() < 0.2:
                del plain[key]
            else:
                plain[key] = copy.deepcopy(rng.choice(STRANGE))
            return
        plain = plain[key]


def mutate_archive(rng, data):
    """Return an archive whose JSON is strange, some of its arrays altered, perhaps packed."""
    made = io.BytesIO()
    packing = rng.choice([zipfile.ZIP_STORED] * 3 + [zipfile.ZIP_DEFLATED])
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", packing) as new:
        for name in old.namelist():
            content = bytearray(old.read(name))
            if name == "meta.json":
                content = json.dumps(mutate_json(rng, json.loads(content))).encode()
            elif content and rng.random() < 0.5:
                content[rng.randint(0, len(content) - 1)] = rng.randint(0, 255)
            if rng.random() < 0.95:
                new.writestr(rng.choice([name] * 20 + ["../" + name]), bytes(content))
    return made.getvalue()

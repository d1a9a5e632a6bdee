"""A model of transformers by its class and a config.json that lies here: without weights, and without a network."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, NoReturn, Optional, Tuple

from ._errors import RecordingError

_ROWS = 2
_LANGUAGE = ("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForConditionalGeneration", "ForPreTraining")
_EXAMPLE = "--hf GPT2LMHeadModel --config config.json --sequence 128"


def _fail(text: str) -> NoReturn:
    raise RecordingError(text) from None


def _library() -> Any:
    """transformers, which is told to ask nobody."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"
    try:
        import transformers
    except ImportError as error:
        _fail(f"--hf needs transformers in this Python: pip install transformers ({error})")
    return transformers


def _config_of(path: str, transformers: Any) -> Any:
    """Of a file, or of the config.json in a folder."""
    file = os.path.join(path, "config.json") if os.path.isdir(path) else path
    try:
        with open(file, encoding="utf-8") as lines:
            words = json.load(lines)
    except OSError as error:
        _fail(f"{file}: {error.strerror}: --config names a model's config.json, or the folder that it lies in")
    except ValueError as error:
        _fail(f"{file}: is no JSON: {error}")
    kind = words.get("model_type") if isinstance(words, dict) else None
    if kind is None:
        _fail(f"{file}: names no \"model_type\", so it is no config.json of transformers")
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    if kind not in known:
        _fail(f"{file}: transformers {transformers.__version__} has no model of type \"{kind}\"; a model with code of its own is recorded "
              "by FILE.py:NAME")
    return known[kind].from_dict(words)


def _class_of(name: Optional[str], config: Any, path: str, transformers: Any) -> Any:
    """The class that --hf names, or that the config does; of an AutoModel the one for this config."""
    named = name or next(iter(config.architectures or ()), None)
    if named is None:
        _fail(f"{path}: names no \"architectures\": add the model's class, such as --hf GPT2LMHeadModel or --hf AutoModelForCausalLM")
    found = getattr(transformers, named, None) if named.isidentifier() else None
    if found is None or not hasattr(found, "from_config") and not hasattr(found, "_from_config"):
        _fail(f"--hf {named}: transformers {transformers.__version__} has no model of this class; it is one such as {_EXAMPLE}")
    if not hasattr(found, "_model_mapping"):
        own = getattr(found, "config_class", None)
        if own is not None and not isinstance(config, own):
            _fail(f"--hf {named}: takes a {own.__name__}, and {path} is a {type(config).__name__}")
        return found
    try:
        one = found._model_mapping[type(config)]
    except KeyError:
        _fail(f"--hf {named}: has no model for a {type(config).__name__}, which {path} is")
    return one[0] if isinstance(one, (tuple, list)) else one


def _token(config: Any) -> int:
    """An id that means nothing of its own: positions and lengths may be made of where padding is."""
    special = set()
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        value = getattr(config, name, None)
        special.update(value if isinstance(value, (list, tuple)) else [value])
    return next(number for number in range(len(special) + 1) if number not in special)


def _inputs_of(model: Any, config: Any, sequence: int) -> Dict[str, Any]:
    import torch
    if model.main_input_name != "input_ids":
        _fail(f"{model.__name__} reads {model.main_input_name}, not tokens: record it by FILE.py:NAME and --input")
    ids = torch.full((_ROWS, sequence), _token(config), dtype=torch.int64)
    inputs = {"input_ids": ids}
    if model.__name__.endswith(_LANGUAGE):
        inputs["labels"] = ids
    if model.__name__.endswith("ForSequenceClassification"):
        inputs["labels"] = torch.zeros(_ROWS, dtype=torch.int64)
    return inputs


def model_of(name: Optional[str], path: Optional[str], sequence: Optional[int]) -> Tuple[str, Any, Dict[str, Any]]:
    """The class's name, a function that builds it, in the type that the config names, and its inputs of some rows."""
    if not path:
        _fail(f"--hf {name}: --config is missing: weights are not loaded, but a model's config.json is, such as {_EXAMPLE}")
    if not sequence or sequence < 1:
        _fail("--sequence is missing: how many tokens a row has, such as --sequence 128")
    transformers = _library()
    config = _config_of(path, transformers)
    model = _class_of(name, config, path, transformers)
    most = getattr(config.get_text_config(), "max_position_embeddings", None)
    if isinstance(most, int) and 0 < most < sequence:
        _fail(f"--sequence {sequence}: {path} has positions for {most} tokens")
    return model.__name__, lambda: model._from_config(config), _inputs_of(model, config, sequence)

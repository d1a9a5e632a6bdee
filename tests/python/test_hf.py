"""Models of transformers from a config.json alone."""
import json
import unittest
from unittest import mock

from support import Case, needs

from snsim import RecordingError, _hf
import snsim

GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": 50,
        "n_positions": 32, "bos_token_id": 1, "eos_token_id": 1}
BERT = {"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
        "vocab_size": 50, "max_position_embeddings": 32, "dtype": "bfloat16"}


@needs("transformers")
class Config(Case):
    def config(self, words):
        path = self.folder / "config.json"
        path.write_text(words if isinstance(words, str) else json.dumps(words))
        return str(path)

    def refused(self, text, *arguments):
        with self.assertRaises(RecordingError) as caught:
            _hf.model_of(*arguments)
        self.assertIn(text, str(caught.exception))

    def test_the_same_as_by_hand(self):
        import torch
        import transformers
        self.config(GPT2)
        name, build, inputs = _hf.model_of(None, str(self.folder), 8)
        self.assertEqual(name, "GPT2LMHeadModel")
        self.assertIs(inputs["labels"], inputs["input_ids"])
        ids = torch.zeros(2, 8, dtype=torch.int64)
        by_hand = snsim.record(transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)), {"input_ids": ids, "labels": ids})
        by_config = snsim.record(build, inputs)
        self.assertEqual(by_config.batches, [2, 3])
        for count in ("operations", "storages", "parameters"):
            self.assertEqual(getattr(by_config, count), getattr(by_hand, count))

    def test_classes(self):
        import torch
        path = self.config(BERT)
        for hf, name in (("AutoModelForSequenceClassification", "BertForSequenceClassification"), ("BertModel", "BertModel")):
            found, build, inputs = _hf.model_of(hf, path, 8)
            self.assertEqual(found, name)
            self.assertEqual(next(build().parameters()).dtype, torch.bfloat16)
            self.assertEqual(tuple(inputs), ("input_ids", "labels") if name.endswith("Classification") else ("input_ids",))

    def test_a_classifier_without_padding(self):
        path = self.config(GPT2)
        _, build, inputs = _hf.model_of("AutoModelForSequenceClassification", path, 8)
        with self.assertRaises(RecordingError) as caught:
            snsim.record(build, inputs)
        self.assertIn("give the config a pad_token_id", str(caught.exception))
        _, build, inputs = _hf.model_of("AutoModelForSequenceClassification", self.config({**GPT2, "pad_token_id": 0}), 8)
        self.assertGreater(snsim.record(build, inputs).operations, 0)

    def test_refused(self):
        gpt2 = self.config(GPT2)
        self.refused("--config is missing", "GPT2LMHeadModel", None, 8)
        self.refused("--sequence is missing", None, gpt2, None)
        self.refused("positions for 32 tokens", None, gpt2, 33)
        self.refused("no model of this class", "NoSuchModel", gpt2, 8)
        self.refused("no model of this class", "AutoConfig", gpt2, 8)
        self.refused("no model of this class", "os.system", gpt2, 8)
        self.refused("takes a BertConfig", "BertModel", gpt2, 8)
        self.refused("has no model for a GPT2Config", "AutoModelForMaskedLM", gpt2, 8)
        self.refused("No such file", None, str(self.folder / "none.json"), 8)
        self.refused("names no \"architectures\"", None, self.config(BERT), 8)
        self.refused("is no JSON", None, self.config("{"), 8)
        self.refused("names no \"model_type\"", None, self.config("[]"), 8)
        self.refused("no model of type \"mine\"", None, self.config({"model_type": "mine"}), 8)
        vit = self.config({"model_type": "vit", "architectures": ["ViTForImageClassification"]})
        self.refused("reads pixel_values, not tokens", None, vit, 8)

    def test_without_transformers(self):
        with mock.patch.dict("sys.modules", {"transformers": None}):
            self.refused("--hf needs transformers", None, self.config(GPT2), 8)


if __name__ == "__main__":
    unittest.main()

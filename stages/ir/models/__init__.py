"""Model files: TFLite and ONNX readers, the TFLite writer, the zoo, `model:` entries."""

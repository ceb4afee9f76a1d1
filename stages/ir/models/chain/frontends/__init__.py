"""Front ends: from samples of sound to features, as TFLite files of signal operators."""

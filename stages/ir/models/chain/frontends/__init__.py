"""Front ends: TFLite files of signal operators that compute features from audio samples."""

/* Log-mel spectra of frames, in portable C. */
#pragma once

#include "log_mel_functions.h"

FL_LOG_MELS(fl);

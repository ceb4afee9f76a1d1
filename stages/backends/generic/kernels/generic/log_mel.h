/* Log-mel spectra of frames, in portable C. */
#ifndef FIRMLINE_GENERIC_LOG_MEL_H
#define FIRMLINE_GENERIC_LOG_MEL_H

#include "log_mel_functions.h"

FL_LOG_MELS(fl);

#endif

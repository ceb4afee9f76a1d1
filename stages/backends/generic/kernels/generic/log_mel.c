/* Log-mel spectra of frames, in portable C. */
#include "log_mel.h"

#include "log_mel_scalar.h"

LOG_MEL_FUNCTIONS(fl)

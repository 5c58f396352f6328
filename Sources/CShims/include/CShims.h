// C macros and inline functions that Swift can't see, and a signal's handler. No logic of the proxy lives here.
#pragma once

#include "EventLoopShims.h"

#include "CrashShims.h"
#include "FileShims.h"
#include "MemoryShims.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "IsolationShims.h"
#include "ProcessShims.h"
#include "TLSShims.h"

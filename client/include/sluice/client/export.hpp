#pragma once

/// Mark what the shared library exports, and what within that it keeps to itself.
#define SLUICE_CLIENT_API [[gnu::visibility("default")]]
#define SLUICE_CLIENT_LOCAL [[gnu::visibility("hidden")]]

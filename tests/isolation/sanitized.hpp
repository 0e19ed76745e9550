#pragma once

// A sanitizer has handlers for faults of its own, which are left to it, and needs more memory than a limit grants.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLUICE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLUICE_SANITIZED 1
#endif
#endif

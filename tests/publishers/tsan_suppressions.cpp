// What ThreadSanitizer is not to report of the NATS publisher's tests. libnats and OpenSSL are not instrumented, but
// what they do through the C library is seen.

// libnats 3.4 reads a TLS connection on one thread and writes it on others, under no common lock. When the connection
// ends, OpenSSL in the reading thread puts its alert of two bytes into the buffer that the writing thread sent from
// last. What was not acknowledged by then is sent again on the next connection. The name is the sanitizer's.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __tsan_default_suppressions();
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __tsan_default_suppressions() { return "race:libssl.so.3\n"; }

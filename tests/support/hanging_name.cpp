#include "tests/support/hanging_name.hpp"

#include <dlfcn.h>
#include <netdb.h>

#include <string_view>

/// Whoever asks for a name finds this one before the C library's, where it is compiled into the program: libraries too.
/// "two.invalid" is a machine of two addresses.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* node, const char* service,
                                                                  const addrinfo* hints, addrinfo** found) {
  static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view name = node == nullptr ? "" : node;
  if (name.ends_with("hangs.invalid")) {
    sluice::test::hang().wait();
    return EAI_AGAIN;
  }
  if (name != "two.invalid") {
    return real(node, service, hints, found);
  }
  const int code = real("127.0.0.2", service, hints, found);
  return code == 0 ? real("127.0.0.1", service, hints, &(*found)->ai_next) : code;
}

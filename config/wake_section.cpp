#include "config/wake_section.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/plain_reads.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

constexpr std::size_t kShortestSecret = 16;
constexpr std::size_t kLongestSecret = 255;
constexpr std::array<std::string_view, 2> kWildcards{"0.0.0.0", "[::]"};

const char* address_complaint(const std::string& text) {
  return listen_complaint(text) == nullptr ? nullptr : "\"host:port\", such as \"10.0.0.5:7011\" or \"[fd00::5]:7011\"";
}

bool is_wildcard(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return std::find(kWildcards.begin(), kWildcards.end(), host) != kWildcards.end();
}

const char* announce_complaint(const std::string& text) {
  if (is_wildcard(text)) {
    return "an address that others can send to; leave it out where 'listen' names one";
  }
  return address_complaint(text);
}

const char* secret_complaint(const std::string& text) {
  const bool good = text.size() >= kShortestSecret && text.size() <= kLongestSecret;
  return good ? nullptr : "16 to 255 bytes, such as `openssl rand -hex 32` prints";
}

}  // namespace

void read_wake(Section wake, Reader& reader, HostConfig& config) {
  WakeConfig& read = config.wake;
  wake.read("listen", read.listen, address_complaint);
  wake.read("announce", read.announce, announce_complaint);
  read_secret(wake, reader, "secret", read.secret, secret_complaint);
  read_flag(wake, reader, "ring", read.ring);
  const Member* listen = wake.find("listen");
  const Member* announce = wake.find("announce");
  if (announce != nullptr && listen == nullptr) {
    reader.error(announce->place, wake.naming("announce") + "goes with 'listen' only; add it, or leave this out");
  }
  if (listen != nullptr && announce == nullptr && is_wildcard(read.listen)) {
    reader.error(listen->value.place, wake.naming("listen") +
                                          "stands for every address of this machine, so that "
                                          "others cannot be told where to send; add 'announce' "
                                          "with the one that they reach");
  }
}

}  // namespace sluice::config

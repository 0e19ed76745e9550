// Datagrams and announcements, which anybody may have written: what is accepted must come out again as it was, and no
// signature is ever found right by chance.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "host/queue/wake/announcement.hpp"
#include "host/queue/wake/datagram.hpp"

namespace {

namespace wake = sluice::queue::wake;

void demand(bool fact) {
  if (!fact) {
    std::abort();
  }
}

void read_datagram(std::string_view bytes) {
  const auto datagram = wake::Datagram::read(bytes);
  wake::RingFilter filter("a secret that no input has");
  filter.know({{"orders", [] { return sluice::WallTime(std::chrono::milliseconds(1'800'000'000'123)); }}});
  demand(filter.judge(bytes, {}).result != wake::RingResult::rung);
  if (!datagram) {
    return;
  }
  demand(!datagram->signed_with("a secret that no input has"));
  demand(wake::Datagram::read(wake::write_datagram(datagram->ring(), ""))->ring() == datagram->ring());
  demand(datagram->is_signed() || wake::write_datagram(datagram->ring(), "") == bytes);
}

void read_announcement(std::string_view text) {
  const auto announcement = wake::decode("host", text);
  if (announcement) {
    demand(wake::decode("host", wake::encode(*announcement)) == announcement);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_datagram(bytes);
  read_announcement(bytes);
  return 0;
}

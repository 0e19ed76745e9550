// Lines at a host's control socket, from either side, and what hosts tell of themselves on the boards of their queues:
// what is accepted must come out again as it was.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "host/fleet/host_record.hpp"
#include "host/runtime/control_socket.hpp"

namespace {

namespace fleet = sluice::fleet;
namespace runtime = sluice::runtime;

void demand(bool fact) {
  if (!fact) {
    std::abort();
  }
}

template <typename Decode>
void come_back(std::string_view line, const Decode& decode) {
  const auto read = decode(line);
  if (!read) {
    demand(!read.error().message().empty());
    demand(read.error().message().find('\n') == std::string::npos);
    return;
  }
  const std::string written = encode(*read);
  demand(written.find('\n') == std::string::npos);
  const auto again = decode(written);
  demand(again.has_value() && encode(*again) == written);
}

void read_record(std::string_view text) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  if (const auto record = fleet::read_record(text)) {
    const std::string written = fleet::write_record(*record, kAll);
    const auto again = fleet::read_record(written);
    demand(again.has_value() && fleet::write_record(*again, kAll) == written);
    static_cast<void>(fleet::write_record(*record, 300));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  come_back(line, runtime::decode_request);
  come_back(line, runtime::decode_answer);
  read_record(line);
  return 0;
}

#include "base/resolver.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/hanging_calls.hpp"
#include "base/ranges.hpp"

namespace sluice {

namespace {

using Addresses = std::vector<std::string>;

/// Of the system's resolver, which heeds no deadline.
Result<Addresses> look_up(const std::string& host) {
  boost::asio::io_context nothing_to_run;
  boost::system::error_code failed;
  const auto found = boost::asio::ip::tcp::resolver(nothing_to_run).resolve(host, "", failed);
  if (failed) {
    return Error(ErrorCode::unavailable, "the name \"" + host + "\" cannot be resolved: " + failed.message());
  }
  return mapped(found, [](const auto& one) { return one.endpoint().address().to_string(); });
}

}  // namespace

Result<Addresses> addresses_of(const std::string& host, const Clock& clock, Deadline deadline) {
  static auto* const look_ups = new HangingCalls<Addresses>();
  boost::system::error_code is_name;
  boost::asio::ip::make_address(host, is_name);
  return is_name ? look_ups->make(
                       "the look-up of the name \"" + host + "\"", [host] { return look_up(host); }, clock, deadline)
                 : Addresses{host};
}

}  // namespace sluice

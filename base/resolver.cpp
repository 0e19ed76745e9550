#include "base/resolver.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <future>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "base/mutex.hpp"
#include "base/ranges.hpp"
#include "base/signal_block.hpp"

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

/// Looks each name up on a thread of its own, which is left behind where it hangs; however many wait for a name, there
/// is one thread for it. Thread-safe.
class Resolver {
 public:
  Result<Addresses> find(const std::string& host, const Clock& clock, Deadline deadline) {
    forget_ended();
    SLUICE_TRY(found, lookup_of(host));
    const bool in_time = found->wait_until(clock.machine_time(deadline.time())) == std::future_status::ready;
    forget_ended();
    return in_time ? found->get() : Error(ErrorCode::timeout, "the name \"" + host + "\" was not resolved in time");
  }

 private:
  using Found = std::shared_future<Result<Addresses>>;
  struct Lookup {
    Found found;
    std::jthread thread;
  };

  /// The one that is under way, or a new one.
  Result<Found> lookup_of(const std::string& host) {
    const MutexLock lock(mutex_);
    Lookup& lookup = lookups_[host];
    if (!lookup.found.valid()) {
      std::packaged_task<Result<Addresses>()> task([host] { return look_up(host); });
      lookup.found = task.get_future().share();
      const SignalBlock quiet;
      try {
        lookup.thread = std::jthread(std::move(task));
      } catch (const std::system_error& error) {
        lookups_.erase(host);
        return Error(ErrorCode::unavailable,
                     "the name \"" + host + "\" cannot be looked up: no thread: " + error.code().message());
      }
    }
    return lookup.found;
  }

  void forget_ended() {
    const MutexLock lock(mutex_);
    std::erase_if(lookups_, [](const auto& one) {
      return one.second.found.wait_for(Duration::zero()) == std::future_status::ready;
    });
  }

  Mutex mutex_;
  std::map<std::string, Lookup> lookups_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

Result<Addresses> addresses_of(const std::string& host, const Clock& clock, Deadline deadline) {
  static auto* const resolver = new Resolver();  // whose threads may outlive everything else
  boost::system::error_code is_name;
  boost::asio::ip::make_address(host, is_name);
  return is_name ? resolver->find(host, clock, deadline) : Addresses{host};
}

}  // namespace sluice

#pragma once

#include <poll.h>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/runtime/control_folder.hpp"
#include "host/runtime/control_protocol.hpp"
#include "host/runtime/control_talk.hpp"
#include "host/runtime/service.hpp"

namespace sluice::runtime {

/// Who asks, as the kernel knows him.
struct ControlPeer {
  std::uint32_t user = 0;
  std::int32_t process = 0;
};

/// What a caller is told now, and what it waits for besides.
struct ControlReply {
  /// Waits for the end of the host.
  static constexpr std::uint64_t kFarewell = ~std::uint64_t{0};

  ControlAnswer answer;
  std::optional<std::uint64_t> awaits;  ///< the number of what will be told, from 1
};

/// The host's side of its control socket: one request a connection, from the host's own user and from root.
///
/// One thread that sleeps while nobody asks. Callers cannot hurt it: a request has five seconds and 4 KiB, an answer
/// five seconds to be taken, and the oldest of too many connections makes room for the newest. It never holds up the
/// end of the host, and its file goes with it.
class ControlSocket final : public Service {
 public:
  /// Called on the socket's thread, one at a time, under no lock; must be quick.
  using Answer = std::function<ControlReply(const ControlRequest& request, const ControlPeer& peer)>;

  static constexpr std::size_t kMostCallers = 32;

  /// Makes the folder and the socket; answers begin with `start()`. `clock` outlives it.
  static Result<std::unique_ptr<ControlSocket>> open(const ControlFolder& folder, Answer answer, const Clock& clock);
  ~ControlSocket() override;

  const std::string& file() const { return socket_.file; }

  Result<void> start() override;
  /// Closes all connections, whatever their callers are at, and removes the file.
  void stop() override;

  /// Tells those who wait for something up to this number what came of it. Returns at once. Thread-safe.
  void tell(std::uint64_t number, const ControlAnswer& answer);
  /// Tells all who wait how the host has ended, and removes the file: nobody is answered any more. Returns at once.
  /// Thread-safe.
  void farewell(const ControlEnding& ending);

 private:
  struct Caller {
    Caller(Descriptor accepted, const ControlPeer& from, SteadyTime now)
        : descriptor(std::move(accepted)), peer(from), talk(now) {}
    const Descriptor descriptor;
    const ControlPeer peer;
    ControlTalk talk;
    std::uint64_t awaits = 0;
  };

  /// A line that came, or one that was too long.
  struct Question {
    Caller* caller = nullptr;
    std::optional<std::string> line;
  };

  ControlSocket(ListeningSocket socket, Answer answer, const Clock& clock);
  void serve(const std::stop_token& stop);
  std::vector<pollfd> what_to_watch();
  SteadyTime next_deadline();
  void serve_callers(const std::vector<pollfd>& watched);
  void admit();
  void read_from(Caller& caller, std::vector<Question>& questions);
  ControlReply answer_to(const Question& question) const;
  void reply(Caller& caller, const ControlReply& reply);
  void write_to(Caller& caller);
  void wake();

  // Fixed after construction.
  const ListeningSocket socket_;
  const Answer answer_;
  const Clock& clock_;
  const Descriptor wake_;  ///< eventfd

  // Touched only by the thread.
  SteadyTime accepts_again_{};  ///< after a time without a free descriptor

  Mutex mutex_;
  /// Only the thread adds and removes callers, so that it may point to them without the lock.
  std::list<Caller> callers_ SLUICE_GUARDED_BY(mutex_);
  // The last that was told: a caller may come to wait for it only afterwards.
  std::uint64_t told_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::string told_line_ SLUICE_GUARDED_BY(mutex_);

  Mutex stopping_;  ///< held while joining, so that every stop() returns only once the thread has ended
  // Last, so that it ends before what it uses.
  std::jthread thread_;
};

}  // namespace sluice::runtime

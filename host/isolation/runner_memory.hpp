#pragma once

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <ctime>
#include <thread>

#include "base/descriptor.hpp"
#include "host/isolation/crash_handler.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/plugin/metric_board.hpp"

/// The kernel's way of waiting for a word of memory, here between processes.
namespace sluice::isolation {

/// Sleeps while `word` is `seen`, at most `timeout` (Duration::max(): for ever). May return early.
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen, Duration timeout) noexcept {
  timespec span{};
  if (timeout != Duration::max()) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    span = {static_cast<std::time_t>(seconds.count()), static_cast<long>((timeout - seconds).count())};
  }
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, timeout == Duration::max() ? nullptr : &span, nullptr, 0);
}

inline void futex_wake(const std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// How long it is worth looking at a word of memory before one sleeps on it: as long as it has taken of late, and not
/// at all where that is too long, or with one processor. Now and then it looks longest: two sleepers that wait for each
/// other would never find out that the answer comes quickly to one who is awake. Of one thread.
class SpinBudget {
 public:
  /// True once `happened()`, false when it is time to sleep.
  template <typename Happened>
  bool until(Happened happened) noexcept {
    if (happened()) {
      return true;
    }
    const std::uint32_t looks = budget_ > 0 || most_ == 0 ? budget_ : (++skipped_ % kTryAgain == 0 ? most_ : 0);
    for (std::uint32_t i = 1; i <= looks; ++i) {
      pause();
      if (happened()) {
        budget_ = std::clamp(2 * i, std::max(budget_, kLeast), most_);
        return true;
      }
    }
    budget_ = budget_ > kLeast ? budget_ / 2 : 0;
    return false;
  }

 private:
  static constexpr std::uint32_t kLeast = 64;
  static constexpr std::uint32_t kMost = 2048;  ///< about forty microseconds: what two sleeps cost
  static constexpr std::uint32_t kTryAgain = 64;

  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  const std::uint32_t most_ = std::thread::hardware_concurrency() > 1 ? kMost : 0;
  std::uint32_t budget_ = most_;
  std::uint32_t skipped_ = 0;
};

/// Memory that a host and its Runner both see. Sealed against shrinking, so that nothing either of them does makes the
/// other's reads a fault. A resource; not thread-safe.
class SharedMemory : boost::noncopyable {
 public:
  /// A new piece of `size` bytes, all zero.
  static Result<std::unique_ptr<SharedMemory>> create(const char* name, std::size_t size);
  /// The piece behind a descriptor that this process was given, which is closed.
  static Result<std::unique_ptr<SharedMemory>> attach(int descriptor);
  ~SharedMemory() { ::munmap(data_, size_); }

  char* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// -1 for one that was attached.
  int descriptor() const { return descriptor_.get(); }

  /// Makes room for `size` bytes; `data` may be another place afterwards. For the one who created it.
  Result<void> grow(std::size_t size);
  /// Sees what the other has grown.
  Result<void> follow(std::size_t size);
  /// Gives the memory beyond the first `kept` bytes back to the system; it reads as zero then.
  void forget_beyond(std::size_t kept);

 private:
  SharedMemory(Descriptor descriptor, char* data, std::size_t size)
      : descriptor_(std::move(descriptor)), data_(data), size_(size) {}

  const Descriptor descriptor_;
  char* data_;
  std::size_t size_;
};

/// What the host asks of a Runner.
enum class RunnerOrder : std::uint32_t { none, start, messages, end };

/// What a Runner tells. The names of the members below say which of them each carries; `message` says of which one of a
/// batch, in what is about a message.
enum class RunnerEvent : std::uint16_t {
  ready = 1,
  refused,      ///< text: why the handler could not be made
  attempt_log,  ///< level, text: a line about the message
  host_log,     ///< level, text: a line about none
  extended,     ///< number: the time-out is now + that many nanoseconds
  effects,      ///< number: how many bytes there are in all; text: the next of them. Before the outcome they go with
  outcome,      ///< level: the status; number: the delay, or -1; text: the reason
  checkpoint,   ///< level: 1 with the effects before it; text: the bytes. The Runner waits for its answer
  metrics,      ///< text: what the handler's metrics have come to since they were told. Before the outcome
  health,       ///< level: 1 where the part works; number: the length of its name; text: the name, then how it fares
};

/// What became of a checkpoint, as a queue::SettleResult.
struct CheckpointAnswer {
  queue::SettleStatus status;
  ErrorCode code;
  bool reject;
  FixedText<2048> text;  ///< what a handler is told is shorter

  void put(const queue::SettleResult& result);
  queue::SettleResult get() const;
};

/// The first piece of memory that a host and a Runner share. The second one holds what an order is about. Each word has
/// one writer; a word that somebody sleeps on lies in a cache line of its own.
struct RunnerControl {
  static constexpr std::uint32_t kRoom = 256 * 1024;               ///< of events; a power of two
  static constexpr std::size_t kMostMessages = config::kMaxBatch;  ///< of one order
  static constexpr std::uint8_t kStop = 1;
  static constexpr std::uint8_t kLost = 2;

  // Written by the host.
  alignas(64) std::atomic<std::uint32_t> orders;  ///< how many were given; the Runner sleeps on it
  RunnerOrder order;
  std::uint64_t payload_size;
  std::uint64_t payload_room;                   ///< of the second piece
  std::uint32_t messages;                       ///< in it, with an order for a batch
  std::int64_t deadline;                        ///< of the attempt, on the machine's monotonic clock
  alignas(64) std::atomic<std::uint32_t> stop;  ///< how often a stop was asked for; the Runner's second thread
                                                ///< sleeps on it
  std::atomic<std::int64_t> stop_end;           ///< until when the handler has, on the same clock
  std::array<std::atomic<std::uint8_t>, kMostMessages> stops;  ///< of each message: kStop, kLost
  alignas(64) std::atomic<std::uint32_t> consumed;             ///< bytes of events that were read
  std::atomic<std::uint32_t> host_sleeps;
  std::atomic<std::uint32_t> ended;                ///< the process is gone
  alignas(64) std::atomic<std::uint32_t> answers;  ///< how many checkpoints were answered; the Runner sleeps on it
  CheckpointAnswer answer;

  // Written by the Runner.
  alignas(64) std::atomic<std::uint32_t> events;    ///< how many there were; the host sleeps on it
  alignas(64) std::atomic<std::uint32_t> produced;  ///< bytes of events that were written
  std::atomic<std::uint32_t> begun;                 ///< how many orders there had been when one was taken up last
  std::atomic<std::uint32_t> runner_sleeps;
  std::atomic<std::uint32_t> room_wanted;  ///< somebody sleeps on `consumed`
  alignas(64) CrashRecord crash;
  std::array<char, kRoom> room;
};

/// One event as it travels. A value; `text` borrows when it is sent.
struct EventHead {
  std::uint32_t size;  ///< of the text
  RunnerEvent kind;
  std::int16_t level;
  std::int64_t number;
  std::uint64_t message;
};

/// The most text that an event has.
inline constexpr std::uint32_t kEventTextLimit = 64 * 1024;

/// The events on their way from a Runner to its host. Each end is of one thread at a time.
class EventRing {
 public:
  enum class Found { nothing, event, nonsense };
  explicit EventRing(RunnerControl& control) : control_(control) {}

  /// The Runner's end. False when there is no room; nothing is written then.
  bool write(RunnerEvent kind, std::int16_t level, std::int64_t number, std::string_view text,
             std::size_t message = 0) noexcept;
  /// Waits until there may be room, for moments.
  void wait_for_room() noexcept;

  /// The host's end: the next event. Whatever the other end writes, what makes no sense is told, and never read beyond.
  /// `text` keeps its memory from call to call.
  Found read(EventHead& head, std::string& text);

 private:
  RunnerControl& control_;
};

// What travels between a host and a Runner, as bytes. Both ends are the same program, so there is no version.

/// A handler that goes around another one. A value.
struct AroundFacts {
  std::string plugin;  ///< its file
  std::string handler;
  plugin::OptionValues options;
};

/// How a Runner begins. A value.
struct RunnerSetup {
  HandlerFacts facts;
  plugin::OptionValues options;
  std::vector<AroundFacts> arounds;          ///< the outermost first
  std::uint64_t memory = 0;                  ///< limit in bytes; 0: none
  sluice_store effects = SLUICE_STORE_NONE;  ///< as plugin::EffectRules
  bool keeps_key = false;
};

std::string pack_setup(const RunnerSetup& setup);
std::optional<RunnerSetup> unpack_setup(std::string_view bytes);

/// What a handler is told besides its message. Borrows.
struct MessageFacts {
  std::string_view queue;
  std::uint32_t max_attempts = 0;
  const std::string* first_result = nullptr;  ///< as plugin::Attempt's
};

std::size_t packed_size(const queue::Message& message, const MessageFacts& facts);
/// Into that many bytes; returns what is behind them.
char* pack_message(const queue::Message& message, const MessageFacts& facts, char* bytes);

struct WireMessage {
  queue::Message message;
  std::string queue;
  std::uint32_t max_attempts = 0;
  std::shared_ptr<const std::string> first_result{};
};

/// The first message of these, which goes from them, into what was there before, whose memory is used again. False for
/// bytes that are none.
bool unpack_message(std::string_view& bytes, WireMessage& into);

/// In pieces, each of which an event can carry.
std::vector<std::string> pack_changes(const std::vector<plugin::MetricChange>& changes);
/// Nothing for bytes that are none.
std::optional<std::vector<plugin::MetricChange>> unpack_changes(std::string_view bytes);

/// The most effects that a host takes with an outcome: what is staged, with the lengths of its many parts.
inline constexpr std::size_t kMostPackedEffects = 4 * queue::kMostEffectBytes;

std::string pack_effects(const queue::Effects& effects);
/// Null for bytes that are none, or more than a handler may stage.
std::shared_ptr<const queue::Effects> unpack_effects(std::string_view bytes);

}  // namespace sluice::isolation

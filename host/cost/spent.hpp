#pragma once

#include <cstdint>
#include <string>

namespace sluice::cost {

/// What was spent at DynamoDB, as its answers reported it. A value. Requests are shares where several messages had one.
struct Spent {
  double requests = 0;
  double read_units = 0;
  double write_units = 0;

  bool none() const { return requests == 0 && read_units == 0 && write_units == 0; }
  Spent& operator+=(const Spent& other) {
    requests += other.requests;
    read_units += other.read_units;
    write_units += other.write_units;
    return *this;
  }
  friend Spent operator*(const Spent& spent, double share) {
    return {spent.requests * share, spent.read_units * share, spent.write_units * share};
  }
};

/// The same with the messages that were claimed for it, and their size in begun KiB. A value.
struct Usage {
  Spent spent;
  double messages = 0;
  double kib = 0;
  double indexed_kib = 0;  ///< begun KiB of their records in DynamoMQ's table, which take more beside the body
  // How long they had lain there, due, when they were handed out for the first time: what storage is paid for.
  double message_seconds = 0;
  double kib_seconds = 0;  ///< the same, times the size of each to the byte

  bool none() const { return spent.none() && messages == 0; }
  Usage& operator+=(const Usage& other) {
    spent += other.spent;
    messages += other.messages;
    kib += other.kib;
    indexed_kib += other.indexed_kib;
    message_seconds += other.message_seconds;
    kib_seconds += other.kib_seconds;
    return *this;
  }
};

/// While it lives, what this thread spends is this queue's, whichever table it goes to, and adds up here. They nest;
/// the innermost counts. To be destroyed by the thread that made it.
class SpendScope {
 public:
  enum class Whose {
    caller,  ///< whoever made the scope asks it for what was spent
    nobody,  ///< no job's by itself: it goes into the queue's shared costs at once, as what is read ahead for all
  };

  /// `queue` outlives the scope.
  explicit SpendScope(const std::string& queue, Whose whose = Whose::caller)
      : queue_(queue), whose_(whose), outer_(innermost_) {
    innermost_ = this;
  }
  ~SpendScope() { innermost_ = outer_; }
  SpendScope(const SpendScope&) = delete;
  SpendScope& operator=(const SpendScope&) = delete;

  const std::string& queue() const { return queue_; }
  bool shared() const { return whose_ == Whose::nobody; }
  const Spent& spent() const { return spent_; }
  void add(const Spent& spent) { spent_ += spent; }

  /// The innermost one of this thread; null: there is none.
  static SpendScope* current() { return innermost_; }

 private:
  const std::string& queue_;
  const Whose whose_;
  SpendScope* const outer_;
  inline static thread_local SpendScope* innermost_ = nullptr;
  Spent spent_;
};

}  // namespace sluice::cost

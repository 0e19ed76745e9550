#pragma once

#include <deque>
#include <set>
#include <vector>

#include "host/plugin/handler_instance.hpp"
#include "sluice/async.h"

namespace sluice::plugin {

/// A message at work, as the desk knows it. Lives from `open` until `end`.
class DeskEntry : boost::noncopyable {
 public:
  virtual ~DeskEntry() = default;

  virtual const sluice_context& context() const = 0;
  virtual Attempt& attempt() = 0;
  virtual std::string_view message_id() const = 0;
  /// Ends it, with what is reported (null: a fault), or for what its handler must not have done; it is gone when this
  /// returns. Called once, without locks.
  virtual void end(const sluice_outcome* outcome, Breach breach) noexcept = 0;
};

/// An instance of an asynchronous handler, as the desk knows it. Compared by its address; borrows.
struct DeskUser {
  const std::string& job;
  const HandlerLog& log;
};

class Watch;

/// "sluice.async/1" for all handlers of this process: hands out tokens, finds the messages that they name, and keeps
/// their timers, on one thread that lives as long as there is a user. Thread-safe. There is one, and it lives for ever,
/// so that a token which is used too late is refused by name and never is an address.
///
/// A token is the number of a place and how often that place was taken.
class AsyncDesk : boost::noncopyable {
 public:
  static AsyncDesk& instance();

  /// What plugins are given.
  static const sluice_async_host& table();

  /// `user` lives until it has left.
  void join(const DeskUser& user);
  /// Nothing of it is at work any more. Its last timers are called before this returns.
  void leave(const DeskUser& user);

  sluice_token open(const DeskUser& user, DeskEntry& entry);

  sluice_answer complete(sluice_token token, const sluice_outcome* outcome, Breach breach = Breach::none) noexcept;
  sluice_answer call_after(sluice_token token, Duration delay, void (*call)(void*), void* data) noexcept;

 private:
  /// One place, with what was there last.
  struct Place {
    std::uint64_t turn = 0;  ///< how often it was taken
    DeskEntry* entry = nullptr;
    const DeskUser* user = nullptr;
    Watch* watch = nullptr;  ///< owned; null before its first timer
    std::string last_id;     ///< of what has ended there
    const std::string* job = nullptr;
  };
  class Timers;
  friend class Watch;

  AsyncDesk();

  /// Null for a token that is not at work.
  Place* find(sluice_token token) SLUICE_REQUIRES(mutex_);
  static void note_id(Place& place, const DeskEntry& entry) noexcept;
  sluice_answer refuse(sluice_token token, std::string_view what) noexcept SLUICE_EXCLUDES(mutex_);
  template <typename Answer, typename Ask>
  static Answer ask(sluice_token token, Answer otherwise, Ask question) noexcept;

  const std::unique_ptr<Timers> timers_;
  Mutex mutex_;
  std::deque<Place> places_ SLUICE_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_ SLUICE_GUARDED_BY(mutex_);
  std::vector<const DeskUser*> users_ SLUICE_GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> jobs_ SLUICE_GUARDED_BY(mutex_);  ///< all that ever were users
};

}  // namespace sluice::plugin

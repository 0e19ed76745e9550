#include "host/work/lease_book.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace sluice::work {
namespace {

constexpr Duration kMaxMargin = std::chrono::seconds(1);
constexpr Duration kMaxCall = std::chrono::seconds(10);

}  // namespace

Duration LeaseTerms::margin() const { return std::min(visibility_ / 10, kMaxMargin); }

Duration LeaseTerms::call_timeout() const { return std::min(visibility_ / 4, kMaxCall); }

Lease LeaseTerms::granted(queue::Receipt receipt, SteadyTime ends_at) const {
  const bool endless = ends_at == SteadyTime::max();
  return {std::move(receipt), ends_at, endless ? ends_at : ends_at - visibility_ / 2};
}

SteadyTime LeaseTerms::retry_at(SteadyTime now, Random& random) const {
  const Duration wait = visibility_ / 20;
  return now + wait + Duration(static_cast<Duration::rep>(static_cast<double>(wait.count()) * random.unit()));
}

Task& LeaseBook::add(queue::Message message, Lease lease) {
  Task* task = nullptr;
  if (free_.empty()) {
    task = &storage_.emplace_back();
  } else {
    task = free_.back();
    free_.pop_back();
    *task = Task{};
  }
  task->message = std::move(message);
  task->lease = std::move(lease);
  task->place = active_.size();
  active_.push_back(task);
  return *task;
}

void LeaseBook::tidy(Task& task) {
  if (task.open || task.holds > 0) {
    return;
  }
  SLUICE_ASSERT(active_[task.place] == &task);
  active_[task.place] = active_.back();
  active_[task.place]->place = task.place;
  active_.pop_back();
  // Bodies can be large; an unused place keeps none.
  task.message = {};
  free_.push_back(&task);
}

}  // namespace sluice::work

#include "host/stores/leased/shard_survey.hpp"

#include <algorithm>
#include <utility>

namespace sluice::queue::leased {

void ShardSurvey::expect(SteadyTime at) {
  if (!drawing_ && told_) {
    due_at_ = std::min(due_at_, std::max(at, looked_at_ + kFailurePause));
  }
}

std::vector<KeySketch::Order> ShardSurvey::next(std::size_t places, table::Moment now) {
  if (now.steady < due_at_) {
    return {};
  }
  if (!drawing_) {
    drawing_at_ = now.steady;
    if (told_ && !told_->exact() && now.steady < began_at_ + kAnew) {
      drawing_ = told_;
      drawing_->extend();
    } else {
      drawing_.emplace(places);
    }
  }
  auto orders = drawing_->next(now.wall);
  if (!orders.empty()) {
    return orders;
  }
  const bool anew = !told_ || told_->exact() || now.steady >= began_at_ + kAnew;
  began_at_ = anew ? drawing_at_ : began_at_;
  told_ = std::exchange(drawing_, std::nullopt);
  looked_at_ = drawing_at_;
  due_at_ = now.steady + pause_;
  return {};
}

void ShardSurvey::done(const std::vector<KeySketch::Answer>& answers, SteadyTime now) {
  drawing_->done(answers);
  due_at_ = drawing_->exact() ? now : now + kStep;
}

}  // namespace sluice::queue::leased

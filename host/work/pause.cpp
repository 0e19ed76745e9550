#include "host/work/pause.hpp"

namespace sluice::work {

void Pause::begin(SteadyTime now) {
  on_ = true;
  dispatcher_.close();
  for (Task* task : dispatcher_.waiting()) {
    turn_away(*task, now);
  }
  dispatcher_.drop_gone();
}

void Pause::end(StepEffects& notes) {
  on_ = false;
  claimer_.wake(notes);
}

void Pause::turn_away(Task& task, SteadyTime now) { settler_.add(task, put_back(task.suspect), now); }

}  // namespace sluice::work

#include <algorithm>

#include "base/text/utf8.hpp"
#include "host/plugin/handler_instance.hpp"

namespace sluice::plugin {

class HealthBoard::Seat final : public HealthSeat {
 public:
  explicit Seat(std::shared_ptr<Notes> notes) : notes_(std::move(notes)) {}
  ~Seat() override { forget(); }

  void report(std::string_view part, bool works, std::string_view text) noexcept override {
    try {
      take(part, works, text);
    } catch (const std::exception&) {
      // Without memory nothing is said; it is not the handler's affair.
    }
  }
  void clear() noexcept override { forget(); }

 private:
  void take(std::string_view part, bool works, std::string_view text) {
    if (part.empty() || part.size() > kHealthNameLimit) {
      return;
    }
    Note note{works, clean_utf8(text, kHealthTextLimit)};
    std::replace(note.text.begin(), note.text.end(), '\n', ' ');
    const MutexLock lock(notes_->mutex);
    const auto mine = std::count_if(notes_->by_part.begin(), notes_->by_part.end(),
                                    [this](const auto& entry) { return entry.second.count(this) > 0; });
    const std::string name = clean_utf8(part, kHealthNameLimit);
    const auto found = notes_->by_part.find(name);
    const bool known = found != notes_->by_part.end() && found->second.count(this) > 0;
    if (known || static_cast<std::size_t>(mine) < kHealthParts) {
      notes_->by_part[name][this] = std::move(note);
    }
  }

  void forget() noexcept {
    const MutexLock lock(notes_->mutex);
    for (auto part = notes_->by_part.begin(); part != notes_->by_part.end();) {
      part->second.erase(this);
      part = part->second.empty() ? notes_->by_part.erase(part) : std::next(part);
    }
  }

  const std::shared_ptr<Notes> notes_;
};

std::vector<PartHealth> HealthBoard::parts() const {
  std::vector<PartHealth> all;
  const MutexLock lock(notes_->mutex);
  for (const auto& [part, notes] : notes_->by_part) {
    const auto fails = [](const auto& note) { return !note.second.works; };
    const auto failing = std::count_if(notes.begin(), notes.end(), fails);
    const auto shown = failing == 0 ? notes.begin() : std::find_if(notes.begin(), notes.end(), fails);
    PartHealth health{part, failing == 0, shown->second.text};
    if (failing > 0 && static_cast<std::size_t>(failing) < notes.size()) {
      health.text += " (so say " + std::to_string(failing) + " of " + std::to_string(notes.size()) + " workers)";
    }
    all.push_back(std::move(health));
  }
  return all;
}

std::shared_ptr<HealthSeat> HealthBoard::seat() { return std::make_shared<Seat>(notes_); }

}  // namespace sluice::plugin

// The handler that wake_bench measures with: the body begins with a time, and noted is how much later the handler
// starts.
#include <charconv>
#include <sluice/handler.hpp>

#include "bench/wake_notes.hpp"

struct WakeNote {
  static constexpr const char* name = "wake_note";
  static constexpr sluice::OptionSpec options[] = {
      sluice::required<std::string>("file", "Where the times are noted, as wake_bench makes it."),
  };

  explicit WakeNote(const sluice::Options& values)
      : notes(sluice::bench::WakeNotes::open(values.get<std::string>("file"))) {}

  sluice::Outcome handle(const sluice::Message& message, sluice::Context&) const {
    const std::int64_t now = sluice::bench::monotonic_now();
    std::int64_t since = 0;
    const std::string_view body = message.body();
    std::from_chars(body.data(), body.data() + body.size(), since);
    notes.add(now - since);
    return sluice::done();
  }

  mutable sluice::bench::WakeNotes notes;
};
SLUICE_PLUGIN("wake_note", "1.0.0", WakeNote)

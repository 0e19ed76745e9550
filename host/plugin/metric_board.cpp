#include "host/plugin/metric_board.hpp"

#include <cmath>

#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "sluice/detail/metric_rules.hpp"

namespace sluice::plugin {
namespace {

using detail::borrow;
using detail::view;
using LabelSpan = std::span<const sluice_attribute>;

/// Different things that are said of a board; whoever makes up names cannot fill the log.
constexpr std::size_t kMostComplaints = 100;

using TextPair = std::pair<std::string_view, std::string_view>;
TextPair text_of(const sluice_attribute& label) { return {view(label.name), view(label.value)}; }
TextPair text_of(const std::pair<std::string, std::string>& label) { return label; }

/// Labels in the order of their names, as they are kept and as a plugin hands them over.
struct LabelOrder {
  using is_transparent = void;

  template <typename Some, typename Others>
  bool operator()(const Some& a, const Others& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [](const auto& x, const auto& y) { return text_of(x) < text_of(y); });
  }
};

bool is_clean(std::string_view text) { return text.size() <= detail::kMetricTextLimit && is_utf8(text); }

/// The labels as a series is known by: those with a value, in the order of their names, clean. Holds what it had to
/// make.
class KnownLabels : boost::noncopyable {
 public:
  explicit KnownLabels(LabelSpan labels) {
    const auto* const end = std::remove_copy_if(labels.begin(), labels.end(), known_.begin(),
                                                [](const auto& label) { return view(label.value).empty(); });
    count_ = static_cast<std::size_t>(end - known_.begin());
    std::sort(known_.begin(), known_.begin() + count_,
              [](const auto& a, const auto& b) { return view(a.name) < view(b.name); });
    for (std::size_t i = 0; i < count_; ++i) {
      if (!is_clean(view(known_[i].value))) {
        made_[i] = clean_utf8(view(known_[i].value), detail::kMetricTextLimit);
        known_[i].value = borrow(made_[i]);
      }
    }
  }
  LabelSpan span() const { return {known_.data(), count_}; }

 private:
  std::array<sluice_attribute, SLUICE_METRIC_LABELS> known_{};
  std::array<std::string, SLUICE_METRIC_LABELS> made_;
  std::size_t count_ = 0;
};

}  // namespace

/// One number, or one histogram.
struct MetricBoard::Series : boost::noncopyable {
  Series(Metric& of, sluice_metric_kind what) : metric(of), kind(what) {}

  // Fixed after construction.
  Metric& metric;
  const sluice_metric_kind kind;  ///< 0: what is said to it is dropped
  std::atomic<double> total{0};   ///< of a counter
  Mutex mutex;
  // Guarded by mutex: of gauges and histograms.
  double value SLUICE_GUARDED_BY(mutex) = 0;
  bool spoken SLUICE_GUARDED_BY(mutex) = false;
  bool was_set SLUICE_GUARDED_BY(mutex) = false;  ///< since it was told
  double added SLUICE_GUARDED_BY(mutex) = 0;      ///< since it was told
  std::vector<std::uint64_t> counts SLUICE_GUARDED_BY(mutex);
  // Guarded by the board's mutex: what another board knows.
  std::optional<std::uint32_t> number;  ///< by which it knows it; nothing: it was not told
  double told_value = 0;
  std::vector<std::uint64_t> told_counts;

  void drop() const noexcept;
  SeriesFigures figures(const MetricLabels& labels);
  void merge(const MetricChange& change) {
    const MutexLock lock(mutex);
    std::transform(counts.begin(), counts.end(), change.counts.begin(), counts.begin(), std::plus<>());
    value += change.value;
    added += change.value;
    spoken = spoken || std::any_of(counts.begin(), counts.end(), [](std::uint64_t count) { return count > 0; });
  }
  /// Nothing was said to it yet.
  bool silent() {
    const MutexLock lock(mutex);
    return !spoken && total.load() == 0;
  }
  /// What is new of it; the members that describe it are left out.
  MetricChange change();
};

struct MetricBoard::Metric : boost::noncopyable {
  Metric(MetricBoard& of, sluice_metric_kind what, std::string said, std::span<const double> upper)
      : board(of), kind(what), help(std::move(said)), bounds(upper.begin(), upper.end()), nothing(*this, 0) {}

  // Fixed after construction.
  MetricBoard& board;
  const sluice_metric_kind kind;  ///< 0: it was refused
  const std::string help;
  const std::vector<double> bounds;
  std::string_view name;
  Series nothing;  ///< stands for every series that was not taken
  Mutex mutex;
  // Guarded by mutex; entries stay.
  std::map<MetricLabels, std::unique_ptr<Series>, LabelOrder> series SLUICE_GUARDED_BY(mutex);
};

void MetricBoard::Series::drop() const noexcept { metric.board.dropped_.fetch_add(1); }

SeriesFigures MetricBoard::Series::figures(const MetricLabels& labels) {
  const MutexLock lock(mutex);
  return {labels, kind == SLUICE_METRIC_COUNTER ? total.load() : value, counts};
}

MetricChange MetricBoard::Series::change() {
  MetricChange change;
  const MutexLock lock(mutex);
  if (kind == SLUICE_METRIC_COUNTER) {
    const double now = total.load();
    change.value = now - std::exchange(told_value, now);
  } else {
    const double more = std::exchange(added, 0);
    change.set = std::exchange(was_set, false);
    change.value = change.set ? value : more;
  }
  change.counts = counts;
  for (std::size_t i = 0; i < told_counts.size(); ++i) {
    change.counts[i] -= told_counts[i];
  }
  told_counts = counts;
  return change;
}

namespace {

// The C header names types that nobody sees into.
template <typename To, typename From>
To* opaque(From* pointer) {
  return reinterpret_cast<To*>(pointer);
}

}  // namespace

MetricBoard::MetricBoard(std::string job, HandlerLog log)
    : job_(std::move(job)),
      log_(std::move(log)),
      refused_(std::make_unique<Metric>(*this, 0, std::string(), std::span<const double>())) {}

MetricBoard::~MetricBoard() = default;

void MetricBoard::refuse(std::string_view metric, const std::string& why, Complain often) {
  const std::string name = visible(clean_utf8(metric, detail::kMetricNameLimit));
  {
    const MutexLock lock(mutex_);
    const std::string key = often == Complain::once ? why : name + ": " + why;
    if (complaints_.size() >= kMostComplaints || !complaints_.insert(key).second) {
      return;
    }
  }
  const std::string text = "the metric \"" + name + "\" is not shown: " + why;
  write_log(log_, SLUICE_LOG_WARN, job_, {}, borrow(text));
}

sluice_metric* MetricBoard::metric(const sluice_metric_spec& spec) noexcept {
  try {
    return find_or_make(spec);
  } catch (const std::exception&) {
    return opaque<sluice_metric>(refused_.get());  // There is no memory for it.
  }
}

sluice_metric* MetricBoard::find_or_make(const sluice_metric_spec& spec) {
  std::string why = detail::metric_refusal(spec);
  Complain often = Complain::of_each;
  if (why.empty()) {
    const std::string_view name = view(spec.name);
    const MutexLock lock(mutex_);
    auto found = metrics_.find(name);
    if (found == metrics_.end() && metrics_.size() < SLUICE_METRICS_OF_A_JOB) {
      // A help text stands in a line of its own.
      std::string help = visible(clean_utf8(view(spec.help), detail::kMetricTextLimit));
      found =
          metrics_.emplace(name, std::make_unique<Metric>(*this, spec.kind, std::move(help), detail::buckets_of(spec)))
              .first;
      found->second->name = found->first;
    }
    if (found == metrics_.end()) {
      why = "the job has " + std::to_string(SLUICE_METRICS_OF_A_JOB) + " metrics already; use labels";
      often = Complain::once;
    } else {
      why = detail::metric_clash(found->second->kind, found->second->bounds, spec);
      if (why.empty()) {
        return opaque<sluice_metric>(found->second.get());
      }
    }
  }
  refuse(view(spec.name), why, often);
  return opaque<sluice_metric>(refused_.get());
}

sluice_series* MetricBoard::series(sluice_metric* metric, const sluice_attribute* labels, std::size_t count) noexcept {
  Metric& of = *opaque<Metric>(metric);
  try {
    return of.board.find_or_make(of, {labels, labels == nullptr ? 0 : count});
  } catch (const std::exception&) {
    return opaque<sluice_series>(&of.nothing);  // There is no memory for it.
  }
}

sluice_series* MetricBoard::find_or_make(Metric& metric, LabelSpan labels) {
  if (metric.kind == 0) {
    return opaque<sluice_series>(&metric.nothing);
  }
  std::string why = detail::label_refusal(labels);
  if (why.empty()) {
    const KnownLabels known(labels);
    const MutexLock lock(metric.mutex);
    if (const auto found = metric.series.find(known.span()); found != metric.series.end()) {
      return opaque<sluice_series>(found->second.get());
    }
    if (metric.series.size() < SLUICE_METRIC_SERIES) {
      MetricLabels kept;
      for (const sluice_attribute& label : known.span()) {
        kept.emplace_back(view(label.name), view(label.value));
      }
      auto made = std::make_unique<Series>(metric, metric.kind);
      {
        const MutexLock own(made->mutex);
        made->counts.resize(metric.kind == SLUICE_METRIC_HISTOGRAM ? metric.bounds.size() + 1 : 0);
      }
      return opaque<sluice_series>(metric.series.emplace(std::move(kept), std::move(made)).first->second.get());
    }
    why = "it has " + std::to_string(SLUICE_METRIC_SERIES) + " sets of labels already, and further ones are dropped; " +
          "use labels of few values";
  }
  refuse(metric.name, why);
  return opaque<sluice_series>(&metric.nothing);
}

void MetricBoard::add(sluice_series* series, double value) noexcept {
  Series& of = *opaque<Series>(series);
  if (!detail::takes_addition(of.kind, value)) {
    return of.drop();
  }
  if (of.kind == SLUICE_METRIC_COUNTER) {
    of.total.fetch_add(value, std::memory_order_relaxed);
    return;
  }
  const MutexLock lock(of.mutex);
  of.value += value;
  of.added += value;
  of.spoken = true;
}

void MetricBoard::set(sluice_series* series, double value) noexcept {
  Series& of = *opaque<Series>(series);
  if (of.kind != SLUICE_METRIC_GAUGE) {
    return of.drop();
  }
  const MutexLock lock(of.mutex);
  of.value = value;
  of.spoken = true;
  of.was_set = true;
}

void MetricBoard::observe(sluice_series* series, double value) noexcept {
  Series& of = *opaque<Series>(series);
  if (of.kind != SLUICE_METRIC_HISTOGRAM || std::isnan(value)) {
    return of.drop();
  }
  const auto& bounds = of.metric.bounds;
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
  const MutexLock lock(of.mutex);
  ++of.counts[static_cast<std::size_t>(bucket)];
  of.value += value;
  of.added += value;
  of.spoken = true;
}

std::vector<MetricFigures> MetricBoard::figures() const {
  std::vector<MetricFigures> all;
  const MutexLock lock(mutex_);
  for (const auto& [name, metric] : metrics_) {
    MetricFigures& figures = all.emplace_back(MetricFigures{name, metric->help, metric->kind, metric->bounds, {}});
    const MutexLock own(metric->mutex);
    for (const auto& [labels, series] : metric->series) {
      if (!labels.empty() || metric->series.size() == 1 || !series->silent()) {
        figures.series.push_back(series->figures(labels));
      }
    }
  }
  return all;
}

std::vector<MetricChange> MetricBoard::take_changes() {
  std::vector<MetricChange> changes;
  const MutexLock lock(mutex_);
  for (const auto& [name, metric] : metrics_) {
    const MutexLock own(metric->mutex);
    for (const auto& [labels, series] : metric->series) {
      MetricChange change = series->change();
      change.fresh = !series->number.has_value();
      const bool none = std::count(change.counts.begin(), change.counts.end(), 0U) ==
                        static_cast<std::ptrdiff_t>(change.counts.size());
      if (!change.fresh && !change.set && change.value == 0 && none) {
        continue;
      }
      if (change.fresh) {
        series->number = series_told_++;
        change.kind = metric->kind;
        change.name = name;
        change.help = metric->help;
        change.bounds = metric->bounds;
        change.labels = labels;
      }
      change.number = *series->number;
      changes.push_back(std::move(change));
    }
  }
  return changes;
}

bool MetricBoard::apply(const MetricChange& change, std::vector<ToldSeries>& known) {
  if (change.number >= SLUICE_METRICS_OF_A_JOB * SLUICE_METRIC_SERIES ||
      (change.fresh ? change.number != known.size() : change.number >= known.size())) {
    return false;
  }
  if (change.fresh) {
    const sluice_metric_spec spec{sizeof(sluice_metric_spec), change.kind,          borrow(change.name),
                                  borrow(change.help),        change.bounds.data(), change.bounds.size()};
    std::vector<sluice_attribute> labels;
    for (const auto& [name, value] : change.labels) {
      labels.push_back({borrow(name), borrow(value)});
    }
    known.push_back({series(metric(spec), labels.data(), labels.size())});
  }
  ToldSeries& told = known[change.number];
  sluice_series* const one = told.series;
  Series& of = *opaque<Series>(one);
  told.added = change.set ? 0 : told.added + change.value;
  if (change.set) {
    set(one, change.value);
  } else if (of.kind == SLUICE_METRIC_HISTOGRAM) {
    if (change.counts.size() != of.metric.bounds.size() + 1) {
      return false;
    }
    of.merge(change);
  } else if (change.value != 0) {
    add(one, change.value);
  }
  return true;
}

void MetricBoard::forget(const std::vector<ToldSeries>& known) noexcept {
  for (const ToldSeries& told : known) {
    if (opaque<Series>(told.series)->kind == SLUICE_METRIC_GAUGE && told.added != 0) {
      add(told.series, -told.added);
    }
  }
}

}  // namespace sluice::plugin

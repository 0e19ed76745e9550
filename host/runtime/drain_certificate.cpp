#include "host/runtime/drain_certificate.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/text/json_string.hpp"

namespace sluice::runtime {

namespace {

// More values than these are in the JSON alone.
constexpr std::size_t kValuesInText = 5;

std::string decimal(const char* format, double number) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

/// "12 requests, 3.0 RCU, 40.0 WCU, $0.000025 ($0.0000025 a message)"
std::string usage_text(const cost::Usage& usage, const cost::Prices& prices) {
  const double money = prices.of(usage.spent);
  std::string text = decimal("%.0f", usage.spent.requests) + " requests, " + decimal("%.1f", usage.spent.read_units) +
                     " RCU, " + decimal("%.1f", usage.spent.write_units) + " WCU, " + prices.text(money);
  if (usage.messages > 0) {
    text += " (" + prices.text(money / usage.messages) + " a message)";
  }
  return text;
}

/// The members of a usage, for an object that has begun.
std::string usage_json(const cost::Usage& usage, const cost::Prices& prices) {
  return "\"messages\": " + decimal("%.0f", usage.messages) +
         ", \"requests\": " + decimal("%.3f", usage.spent.requests) +
         ", \"read_units\": " + decimal("%.3f", usage.spent.read_units) +
         ", \"write_units\": " + decimal("%.3f", usage.spent.write_units) +
         ", \"money\": " + decimal("%.10f", prices.of(usage.spent)) + "}";
}

cost::Usage sum_of(const cost::CostView& view) {
  cost::Usage sum;
  for (const cost::CostView::Row& row : view.rows) {
    sum += row.total;
  }
  return sum;
}

cost::Usage other_of(const cost::CostView& view) {
  cost::Usage other = view.values.other;
  other += view.values.gone;
  return other;
}

using work::LedgerSnapshot;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// "claimed 9 = 7 done + 1 retried + 1 rejected, stranded 0"; `whole` names the zeroes too.
std::string sum_text(const LedgerSnapshot& ledger, bool whole) {
  std::string text = "claimed " + std::to_string(ledger.claimed) + " = ";
  const std::size_t begin = text.size();
  for (const work::EndingCount& ending : work::kEndingCounts) {
    const std::uint64_t count = ledger.*ending.count;
    if (count == 0 && !whole) {
      continue;
    }
    text += (text.size() == begin ? "" : " + ") + std::to_string(count) + " " + std::string(ending.name);
  }
  if (text.size() == begin) {
    text += "0";
  }
  return text + ", stranded " + std::to_string(ledger.stranded);
}

std::string sum_json(const LedgerSnapshot& ledger) {
  std::string out = "{\"claimed\":" + std::to_string(ledger.claimed);
  for (const work::EndingCount& ending : work::kEndingCounts) {
    out += ",\"" + std::string(ending.name) + "\":" + std::to_string(ledger.*ending.count);
  }
  return out + ",\"stranded\":" + std::to_string(ledger.stranded) + "}";
}

Error cannot_write(const std::string& path) {
  return {ErrorCode::invalid, "cannot write the drain report " + path + ": " + std::strerror(errno) +
                                  "; give --drain-report a file in a folder that exists and can be written"};
}

}  // namespace

bool BookedCost::none() const {
  return std::all_of(view.rows.begin(), view.rows.end(),
                     [](const cost::CostView::Row& row) { return row.total.spent.none(); });
}

std::string BookedCost::text() const {
  std::string text = "cost: " + prices.text(prices.of(sum_of(view).spent)) + " by prices of " + prices.config().as_of;
  for (const cost::CostView::Row& row : view.rows) {
    text += "; " + row.job + " on " + row.queue + ": " + usage_text(row.total, prices);
  }
  std::size_t told = 0;
  cost::Usage rest = other_of(view);
  for (const cost::TopValues::Named& named : view.values.values) {
    if (told++ < kValuesInText) {
      text += "; " + view.attribute + " " + named.value + ": " + usage_text(named.usage, prices);
    } else {
      rest += named.usage;
    }
  }
  if (!rest.none()) {
    text += "; " + view.attribute + " " + std::string(cost::kOtherValues) + ": " + usage_text(rest, prices);
  }
  return text;
}

std::string BookedCost::json() const {
  std::string out = "{\"currency\": " + json_quoted(prices.currency()) +
                    ", \"as_of\": " + json_quoted(prices.config().as_of) +
                    ", \"money\": " + decimal("%.10f", prices.of(sum_of(view).spent)) + ", \"jobs\": [";
  const char* comma = "";
  for (const cost::CostView::Row& row : view.rows) {
    out += comma + ("{\"queue\": " + json_quoted(row.queue)) + ", \"job\": " + json_quoted(row.job) + ", " +
           usage_json(row.total, prices);
    comma = ", ";
  }
  out += "]";
  if (!view.attribute.empty()) {
    out += ", \"attribute\": " + json_quoted(view.attribute) + ", \"values\": [";
    for (const cost::TopValues::Named& named : view.values.values) {
      out += "{\"value\": " + json_quoted(named.value) + ", " + usage_json(named.usage, prices) + ", ";
    }
    out += "{\"value\": " + json_quoted(cost::kOtherValues) + ", " + usage_json(other_of(view), prices) + "]";
  }
  return out + "}";
}

std::string DrainCertificate::text() const {
  const LedgerSnapshot sum = total();
  std::array<char, 64> took_text{};
  std::snprintf(took_text.data(), took_text.size(), "; drained in %.1f s, %s", seconds(took),
                clean ? "clean" : "NOT clean");
  std::string out = "drain certificate: " + sum_text(sum, true) + "; drained in " + decimal("%.1f", seconds(took)) +
                    (clean ? " s, clean" : " s, NOT clean");
  for (const auto& [name, ledger] : jobs) {
    out += "; " + name + ": " + sum_text(ledger, false);
  }
  if (dynamodb) {
    out += "; DynamoDB: " + dynamodb->text(sum.claimed, "claim");
  }
  if (cost && !cost->none()) {
    out += "; " + cost->text();
  }
  return out;
}

std::string DrainCertificate::json() const {
  std::string by_job;
  for (const auto& [name, ledger] : jobs) {
    by_job += (by_job.empty() ? "" : ",") + json_quoted(name) + ":" + sum_json(ledger);
  }
  std::string out = "{\"total\": " + sum_json(total()) + ", \"jobs\": {" + by_job +
                    "}, \"seconds\": " + decimal("%.3f", seconds(took)) + ", \"clean\": " + (clean ? "true" : "false");
  if (dynamodb) {
    out += ", \"dynamodb\": {\"requests\": " + std::to_string(dynamodb->requests) +
           ", \"read_units\": " + decimal("%.1f", dynamodb->read_units) +
           ", \"write_units\": " + decimal("%.1f", dynamodb->write_units) + "}";
  }
  if (cost && !cost->none()) {
    out += ", \"cost\": " + cost->json();
  }
  return out + "}\n";
}

Result<DrainReportFile> DrainReportFile::open(const std::string& path) {
  if (path.empty()) {
    return DrainReportFile(path, Descriptor());
  }
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file.open()) {
    return cannot_write(path);
  }
  return DrainReportFile(path, std::move(file));
}

Result<void> DrainReportFile::write(const DrainCertificate& certificate) {
  if (!file_.open()) {
    return {};
  }
  const std::string text = certificate.json();
  std::size_t written = 0;
  if (ftruncate(file_.get(), 0) != 0 && errno != EINVAL) {  // EINVAL: a pipe or terminal, which has nothing to cut
    return cannot_write(path_);
  }
  while (written < text.size()) {
    const ssize_t count = ::write(file_.get(), text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return cannot_write(path_);
    }
    written += static_cast<std::size_t>(count);
  }
  return {};
}

}  // namespace sluice::runtime

#include "tests/support/dynamodb_model/capacity.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text/json_string.hpp"
#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {
namespace {

double units_of(std::size_t bytes, std::size_t unit) {
  return static_cast<double>(std::max<std::size_t>(1, (bytes + unit - 1) / unit));
}

void append_number(std::string& out, double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number, std::chars_format::fixed);
  out.append(text, end.ptr);
}

double seconds(Duration span) { return std::chrono::duration<double>(span).count(); }

}  // namespace

double write_units(std::size_t bytes) { return units_of(bytes, 1024); }
double read_units(std::size_t bytes) { return units_of(bytes, 4096); }

std::string arn_of(const std::string& table, const std::string& index) {
  return "arn:aws:dynamodb:us-east-1:000000000000:table/" + table + (index.empty() ? "" : "/index/" + index);
}

void Usage::add_read(const std::string& table, const std::string& index, double units) {
  tables_[table][index].read += units;
}

void Usage::add_write(const std::string& table, const std::string& index, double units) {
  tables_[table][index].write += units;
}

void Usage::add(const Usage& other) {
  for (const auto& [table, units] : other.tables_) {
    for (const auto& [index, used] : units) {
      tables_[table][index].read += used.read;
      tables_[table][index].write += used.write;
    }
  }
}

double Usage::read() const {
  double total = 0;
  for (const auto& [table, units] : tables_) {
    for (const auto& [index, used] : units) {
      total += used.read;
    }
  }
  return total;
}

double Usage::write() const {
  double total = 0;
  for (const auto& [table, units] : tables_) {
    for (const auto& [index, used] : units) {
      total += used.write;
    }
  }
  return total;
}

void Usage::append_json(std::string& out, std::string_view mode, bool list, bool split) const {
  if (mode.empty() || mode == "NONE" || tables_.empty()) {
    return;
  }
  out += ",\"ConsumedCapacity\":";
  out += list ? "[" : "";
  bool first = true;
  for (const auto& [name, units] : tables_) {
    out += first ? "" : ",";
    first = false;
    append_table(out, name, units, mode == "INDEXES", split);
  }
  out += list ? "]" : "";
}

void Usage::append_table(std::string& out, const std::string& name, const ByIndex& units, bool indexes, bool split) {
  Units total;
  for (const auto& [index, used] : units) {
    total.read += used.read;
    total.write += used.write;
  }
  const auto append_units = [&](const Units& used) {
    out += "\"CapacityUnits\":";
    append_number(out, used.sum());
    if (split && used.read > 0) {
      out += ",\"ReadCapacityUnits\":";
      append_number(out, used.read);
    }
    if (split && used.write > 0) {
      out += ",\"WriteCapacityUnits\":";
      append_number(out, used.write);
    }
  };
  out += "{\"TableName\":";
  append_json_string(out, name);
  out += ",";
  append_units(total);
  if (indexes) {
    const auto own = units.find("");
    out += ",\"Table\":{";
    append_units(own == units.end() ? Units{} : own->second);
    out += "}";
    bool any = false;
    for (const auto& [index, used] : units) {
      if (index.empty() || used.sum() == 0) {
        continue;
      }
      out += any ? "," : ",\"GlobalSecondaryIndexes\":{";
      any = true;
      append_json_string(out, index);
      out += ":{";
      append_units(used);
      out += "}";
    }
    out += any ? "}" : "";
  }
  out += "}";
}

double Throughput::kept(double rate) const { return rate * std::max(1.0, seconds(limits_.burst)); }

Throughput::Bucket& Throughput::refilled(const std::string& key, double rate, SteadyTime now) {
  const auto [found, fresh] = buckets_.try_emplace(key, Bucket{kept(rate), now});
  Bucket& bucket = found->second;
  if (!fresh && now > bucket.at) {
    bucket.level = std::min(kept(rate), bucket.level + rate * seconds(now - bucket.at));
    bucket.at = now;
  }
  return bucket;
}

// Most partitions are those of single messages, which are written a few times and never again.
void Throughput::forget_full_ones(SteadyTime now) {
  if (buckets_.size() < forget_at_) {
    return;
  }
  const Duration full = std::chrono::seconds(2) + limits_.burst * 2;
  for (auto it = buckets_.begin(); it != buckets_.end();) {
    it = now - it->second.at > full && it->second.level > 0 ? buckets_.erase(it) : std::next(it);
  }
  forget_at_ = std::max<std::size_t>(8192, buckets_.size() * 2);
}

void Throughput::admit(Use use, const std::string& table, const std::string& index, const std::string& hash,
                       SteadyTime now) {
  const char letter = use == Use::read ? 'r' : 'w';
  const std::string place = letter + table + '/' + index;
  if (const double rate = table_rate(use); rate > 0 && refilled(place, rate, now).level <= 0) {
    refuse(use, table, index, false);
  }
  if (const double rate = partition_rate(use); rate > 0) {
    forget_full_ones(now);
    if (refilled(place + '/' + hash, rate, now).level <= 0) {
      refuse(use, table, index, true);
    }
  }
}

void Throughput::charge(Use use, const std::string& table, const std::string& index, const std::string& hash,
                        double units, SteadyTime now) {
  if (units <= 0 || (table_rate(use) <= 0 && partition_rate(use) <= 0)) {
    return;
  }
  const char letter = use == Use::read ? 'r' : 'w';
  const std::string place = letter + table + '/' + index;
  if (const double rate = table_rate(use); rate > 0) {
    refilled(place, rate, now).level -= units;
  }
  if (const double rate = partition_rate(use); rate > 0) {
    refilled(place + '/' + hash, rate, now).level -= units;
  }
}

void Throughput::refuse(Use use, const std::string& table, const std::string& index, bool partition) const {
  Failure failure;
  failure.code = limits_.exception;
  failure.message =
      failure.code == "ThrottlingException"
          ? "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your "
            "table or index so please try again shortly."
          : "The level of configured provisioned throughput for " +
                std::string(index.empty() ? "the table" : "one or more global secondary indexes of the table") +
                " was exceeded. Consider increasing your provisioning level with the UpdateTable API.";
  failure.extra = failure.code == "ThrottlingException" ? ",\"throttlingReasons\":[{\"reason\":\""
                                                        : ",\"ThrottlingReasons\":[{\"reason\":\"";
  failure.extra += index.empty() ? "Table" : "Index";
  failure.extra += use == Use::read ? "Read" : "Write";
  failure.extra += partition ? "KeyRangeThroughputExceeded" : "ProvisionedThroughputExceeded";
  failure.extra += "\",\"resource\":\"" + arn_of(table, index) + "\"}]";
  throw Failure(std::move(failure));
}

}  // namespace sluice::test::model

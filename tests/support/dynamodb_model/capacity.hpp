#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.hpp"

namespace sluice::test::model {

/// Write units of so many bytes; read units of a strongly consistent read of them.
double write_units(std::size_t bytes);
double read_units(std::size_t bytes);

/// Units that one request used, by table and index, and how DynamoDB reports them.
class Usage {
 public:
  /// `index` empty: the table itself.
  void add_read(const std::string& table, const std::string& index, double units);
  void add_write(const std::string& table, const std::string& index, double units);
  void add(const Usage& other);

  double read() const;
  double write() const;
  bool empty() const { return tables_.empty(); }

  /// Appends ,"ConsumedCapacity":... as `mode` asks ("TOTAL", "INDEXES", "NONE"). `list`: an array, as for requests
  /// that may name several tables. `split`: with read and write units, as transactions report.
  void append_json(std::string& out, std::string_view mode, bool list, bool split = false) const;

 private:
  struct Units {
    double read = 0;
    double write = 0;
    double sum() const { return read + write; }
  };
  using ByIndex = std::map<std::string, Units>;  // "": the table itself
  static void append_table(std::string& out, const std::string& name, const ByIndex& units, bool indexes, bool split);

  std::map<std::string, ByIndex> tables_;
};

/// How much a table takes. Rates are units a second; 0: no limit.
struct Limits {
  double partition_write = 0;  ///< DynamoDB: 1,000 for each key
  double partition_read = 0;   ///< DynamoDB: 3,000
  double table_write = 0;      ///< of a table, and of each of its indexes
  double table_read = 0;
  Duration burst = std::chrono::seconds(1);  ///< how much unused capacity is kept; DynamoDB: up to 300 s
  /// The name of refusals: "ProvisionedThroughputExceededException" or "ThrottlingException".
  std::string exception = "ProvisionedThroughputExceededException";
};

/// Token buckets of partitions and tables. A request is let in while there is something in its bucket and may overdraw
/// it.
class Throughput {
 public:
  enum class Use { read, write };

  void set_limits(Limits limits) { limits_ = std::move(limits); }
  const Limits& limits() const { return limits_; }
  /// False: everything is let in, and nothing counts.
  void enforce(bool on) { enforced_ = on; }

  /// Throws a Failure (a throttle that names its reason) when a bucket of this partition or table is empty.
  void admit(Use use, const std::string& table, const std::string& index, const std::string& hash, SteadyTime now);
  void charge(Use use, const std::string& table, const std::string& index, const std::string& hash, double units,
              SteadyTime now);

 private:
  struct Bucket {
    double level = 0;
    SteadyTime at;
  };
  Bucket& refilled(const std::string& key, double rate, SteadyTime now);
  void forget_full_ones(SteadyTime now);
  double partition_rate(Use use) const {
    return !enforced_ ? 0 : (use == Use::read ? limits_.partition_read : limits_.partition_write);
  }
  double table_rate(Use use) const {
    return !enforced_ ? 0 : (use == Use::read ? limits_.table_read : limits_.table_write);
  }
  double kept(double rate) const;
  [[noreturn]] void refuse(Use use, const std::string& table, const std::string& index, bool partition) const;

  Limits limits_;
  bool enforced_ = true;
  std::unordered_map<std::string, Bucket> buckets_;
  std::size_t forget_at_ = 8192;
};

/// "arn:aws:dynamodb:...:table/NAME", or of its index.
std::string arn_of(const std::string& table, const std::string& index = "");

}  // namespace sluice::test::model

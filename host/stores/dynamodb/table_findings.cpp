#include "host/stores/dynamodb/table_findings.hpp"

#include <algorithm>
#include <utility>

namespace sluice::queue::dynamodb {
namespace {

constexpr std::string_view kKeysAreForEver =
    "a table's keys never change: make another table, and copy what is here into it";
constexpr std::string_view kIndexesAreReplaced =
    "delete the index and make it anew with the hash key queue_type (S), the range key sent_at (S) and the projection "
    "ALL";

class Examination {
 public:
  Examination(const dynamo::TableDescription& table, const TableSpec& spec) : table_(table), spec_(spec) {}

  std::vector<table::TableFinding> run() {
    if (is_of_the_other_layout()) {
      return std::move(findings_);
    }
    expect("the hash key", table_.hash_key, spec_.layout.hash_key, kKeysAreForEver);
    expect("the range key", table_.range_key, spec_.layout.range_key, kKeysAreForEver);
    expect_type(spec_.layout.hash_key, kKeysAreForEver);
    if (!spec_.layout.range_key.empty()) {
      expect_type(spec_.layout.range_key, kKeysAreForEver);
    }
    const auto index = spec_.layout.indexed
                           ? std::find_if(table_.indexes.begin(), table_.indexes.end(),
                                          [this](const auto& candidate) { return candidate.name == spec_.index; })
                           : table_.indexes.end();
    if (index != table_.indexes.end()) {
      examine_index(*index);
    } else if (spec_.layout.indexed) {
      add(table::FindingLevel::unfit, "there is no index '" + spec_.index + "'", missing_index_mend());
    }
    if (table_.status != "ACTIVE") {
      add(table::FindingLevel::waiting, "the table is " + table_.status, "wait until it is ACTIVE");
    }
    if (index != table_.indexes.end()) {
      examine_index_status(*index);
    }
    advise(!spec_.layout.indexed || index != table_.indexes.end());
    return std::move(findings_);
  }

 private:
  // Everything else would be different too; one word says why.
  bool is_of_the_other_layout() {
    const TableLayout& other = spec_.layout == kLeasedLayout ? kDynamoMqLayout : kLeasedLayout;
    if (table_.hash_key != other.hash_key || table_.range_key != other.range_key) {
      return false;
    }
    const std::string name(other.name);
    add(table::FindingLevel::unfit,
        "it is a table of the layout \"" + name + "\", and the queue is of the layout \"" +
            std::string(spec_.layout.name) + "\"",
        "write layout = \"" + name + "\" for the queue in the host file (--layout " + name +
            " here), or give the queue a table of its own");
    return true;
  }

  void add(table::FindingLevel level, std::string what, std::string mend) {
    findings_.push_back({level, std::move(what), std::move(mend)});
  }

  void expect(const std::string& what, const std::string& found, std::string_view wanted, std::string_view mend) {
    if (found != wanted) {
      add(table::FindingLevel::unfit,
          what + " is " + (found.empty() ? "none" : "'" + found + "'") + " and must be " +
              (wanted.empty() ? "none" : "'" + std::string(wanted) + "'"),
          std::string(mend));
    }
  }

  void expect_type(std::string_view attribute, std::string_view mend) {
    const auto found = table_.attribute_types.find(std::string(attribute));
    expect("the type of " + std::string(attribute),
           found == table_.attribute_types.end() ? std::string() : found->second, "S", mend);
  }

  void examine_index(const dynamo::IndexDescription& index) {
    expect("the index's hash key", index.hash_key, dynamomq::attribute::kQueueType, kIndexesAreReplaced);
    expect("the index's range key", index.range_key, dynamomq::attribute::kSentAt, kIndexesAreReplaced);
    expect("the index's projection", index.projection, "ALL", kIndexesAreReplaced);
    expect_type(dynamomq::attribute::kQueueType, kIndexesAreReplaced);
    expect_type(dynamomq::attribute::kSentAt, kIndexesAreReplaced);
  }

  void examine_index_status(const dynamo::IndexDescription& index) {
    if (index.status != "ACTIVE" || index.backfilling) {
      add(table::FindingLevel::waiting,
          "the index is " + index.status + (index.backfilling ? " and does not show all messages yet" : ""),
          "wait until it is ACTIVE");
    }
  }

  /// An index with the right keys under another name is probably the one that was meant.
  std::string missing_index_mend() const {
    for (const auto& index : table_.indexes) {
      if (index.hash_key == dynamomq::attribute::kQueueType && index.range_key == dynamomq::attribute::kSentAt) {
        return "index '" + index.name + "' has the right keys: name it as the queue's index";
      }
    }
    return "add one with the hash key queue_type (S), the range key sent_at (S) and the projection ALL";
  }

  void advise(bool has_index) {
    if (!table_.deletion_protection) {
      add(table::FindingLevel::advice, "the table is not protected from deletion", "turn on its deletion protection");
    }
    if (table_.billing_mode != "PAY_PER_REQUEST") {
      add(table::FindingLevel::advice, "capacity is provisioned, and a queue's load comes in waves",
          "change the billing mode to PAY_PER_REQUEST, or let table and index scale by themselves");
    }
    for (const auto& index : table_.indexes) {
      // Where its own index is missing, another may be the one that was meant.
      if (has_index && (!spec_.layout.indexed || index.name != spec_.index)) {
        add(table::FindingLevel::advice,
            "index '" + index.name + "' is none of this queue's, and each write pays for it too",
            "delete it if nobody reads it");
      }
    }
  }

  const dynamo::TableDescription& table_;
  const TableSpec& spec_;
  std::vector<table::TableFinding> findings_;
};

}  // namespace

std::vector<table::TableFinding> examine_table(const dynamo::TableDescription& table, const TableSpec& spec) {
  return Examination(table, spec).run();
}

}  // namespace sluice::queue::dynamodb

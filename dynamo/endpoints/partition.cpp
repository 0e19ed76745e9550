#include "dynamo/endpoints/partition.hpp"

#include <algorithm>
#include <string>

namespace sluice::dynamo {

namespace {

struct Pattern {
  std::string_view prefix;  // what a region's name begins with; a word, a dash and digits follow
  Partition partition;
};

// From AWS's partitions.json. What is not here is "aws", whose pattern therefore need not be.
constexpr Pattern kPatterns[] = {
    {"cn-", {"aws-cn", "amazonaws.com.cn", "api.amazonwebservices.com.cn"}},
    {"us-gov-", {"aws-us-gov", "amazonaws.com", "api.aws"}},
    {"us-iso-", {"aws-iso", "c2s.ic.gov", "api.aws.ic.gov"}},
    {"us-isob-", {"aws-iso-b", "sc2s.sgov.gov", "api.aws.scloud"}},
    {"eu-isoe-", {"aws-iso-e", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"}},
    {"us-isof-", {"aws-iso-f", "csp.hci.ic.gov", "api.aws.hci.ic.gov"}},
    {"eusc-de-", {"aws-eusc", "amazonaws.eu", "api.amazonwebservices.eu"}},
};

constexpr Partition kAws = {"aws", "amazonaws.com", "api.aws"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_'; }

// "north-1"
bool is_word_and_number(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    return false;
  }
  const std::string_view word = text.substr(0, dash);
  const std::string_view number = text.substr(dash + 1);
  return !word.empty() && !number.empty() && std::all_of(word.begin(), word.end(), is_word) &&
         std::all_of(number.begin(), number.end(), is_digit);
}

}  // namespace

const Partition& partition_of(std::string_view region) {
  for (const auto& [prefix, partition] : kPatterns) {
    const bool named = region.substr(0, prefix.size()) == prefix && is_word_and_number(region.substr(prefix.size()));
    if (named || region == std::string(partition.name) + "-global") {
      return partition;
    }
  }
  return kAws;
}

}  // namespace sluice::dynamo

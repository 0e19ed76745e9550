#include "tests/dynamodb_model/request_templates.hpp"

namespace sluice::test::model {

const std::vector<ExpressionTemplate>& update_templates() {
  static const std::vector<ExpressionTemplate> all = {
      {"SET #v = :n, #d = :s", {{"#v", "version"}, {"#d", "data"}}, {":n", ":s"}},
      {"SET receives = if_not_exists(receives, :n) + :n", {}, {":n"}},
      {"ADD receives :n SET #d = :s", {{"#d", "data"}}, {":n", ":s"}},
      {"SET #v = #v + :n", {{"#v", "version"}}, {":n"}},
      {"SET #v = #v - :n REMOVE #d", {{"#v", "version"}, {"#d", "data"}}, {":n"}},
      {"REMOVE kind", {}, {}},
      {"SET kind = :s", {}, {":s"}},
      {"SET sent = :s, kind = :s", {}, {":s"}},
      {"ADD tags :t", {}, {":t"}},
      {"DELETE tags :t", {}, {":t"}},
      {"SET things = :l", {}, {":l"}},
      {"SET things = list_append(things, :l)", {}, {":l"}},
      {"SET things[1] = :s", {}, {":s"}},
      {"REMOVE things[0]", {}, {}},
      {"SET deep.leaf = :s", {}, {":s"}},
      {"SET deep = :s", {}, {":s"}},
      {"SET id = :s", {}, {":s"}},
      {"SET kind = :n", {}, {":n"}},
      {"SET a = :s REMOVE a", {}, {":s"}},
      {"SET copy_of = nowhere", {}, {}},
      {"ADD receives :s", {}, {":s"}},
      {"SET #v = :n,", {{"#v", "version"}}, {":n"}},
      {"SET version = :n SET other = :n", {}, {":n"}},
      {"SET size = :n", {}, {":n"}},
  };
  return all;
}

const std::vector<ExpressionTemplate>& condition_templates() {
  static const std::vector<ExpressionTemplate> all = {
      {"attribute_not_exists(id)", {}, {}},
      {"attribute_exists(id)", {}, {}},
      {"#cv = :cn", {{"#cv", "version"}}, {":cn"}},
      {"attribute_exists(id) AND #cv = :cn", {{"#cv", "version"}}, {":cn"}},
      {"attribute_exists(id) AND attribute_not_exists(#cv)", {{"#cv", "version"}}, {}},
      {"#cv < :cn OR NOT kind = :cs", {{"#cv", "version"}}, {":cn", ":cs"}},
      {"#cv BETWEEN :cn AND :cm", {{"#cv", "version"}}, {":cn", ":cm"}},
      {"kind IN (:cs, :cn)", {}, {":cs", ":cn"}},
      {"begins_with(sent, :cs)", {}, {":cs"}},
      {"contains(tags, :cs)", {}, {":cs"}},
      {"size(tags) > :cn", {}, {":cn"}},
      {"attribute_type(receives, :ct)", {}, {":ct"}},
      {"kind <> :cs", {}, {":cs"}},
      {"version = ", {}, {}},
      {"data = :cs", {}, {":cs"}},
  };
  return all;
}

}  // namespace sluice::test::model

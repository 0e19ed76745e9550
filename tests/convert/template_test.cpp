#include <gtest/gtest.h>

#include <map>

#include "host/cli/convert/fields.hpp"

namespace sluice::cli::convert {
namespace {

config::Environment environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string expanded(const std::string& text, std::map<std::string, std::string> values) {
  const MarkedText marked = mark_templates(text);
  return read_marks(marked.text, marked.templates, environment(std::move(values))).now;
}

Reading translated(const std::string& text) {
  const MarkedText marked = mark_templates(text);
  return read_marks(marked.text, marked.templates, environment({}));
}

TEST(Template, ExpandsEachFormAsComposeDoes) {
  struct Case {
    const char* text;
    const char* unset;
    const char* empty;
    const char* set;
  };
  const Case cases[] = {
      {"$V", "", "", "x"},
      {"${V}", "", "", "x"},
      {"${V:-d}", "d", "d", "x"},
      {"${V-d}", "d", "", "x"},
      {"${V:+r}", "", "", "r"},
      {"${V+r}", "", "r", "r"},
      {"${V:?why}", "", "", "x"},
      {"a$$V", "a$V", "a$V", "a$V"},
      {"$1 $", "$1 $", "$1 $", "$1 $"},
      {"${V:-${W:-d}}", "d", "d", "x"},
      {"${V:-a}}", "a}", "a}", "x}"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(expanded(one.text, {}), one.unset) << one.text;
    EXPECT_EQ(expanded(one.text, {{"V", ""}}), one.empty) << one.text;
    EXPECT_EQ(expanded(one.text, {{"V", "x"}}), one.set) << one.text;
  }
}

TEST(Template, SaysWhichRequiredVariableIsMissing) {
  const MarkedText marked = mark_templates("${A:?because} ${B?}");
  EXPECT_EQ(read_marks(marked.text, marked.templates, environment({{"B", ""}})).missing, std::vector<std::string>{"A"});
  EXPECT_EQ(read_marks(marked.text, marked.templates, environment({{"A", ""}})).missing,
            (std::vector<std::string>{"A", "B"}));
}

TEST(Template, NamesTheLineOfABadOneAndNotItsText) {
  for (const char* text : {"a\nsecret ${V", "a\n${1}secret", "a\n${V!x}", "a\n${V\n}"}) {
    const std::string error = mark_templates(text).error;
    EXPECT_NE(error.find("line 2"), std::string::npos) << text;
    EXPECT_EQ(error.find("secret"), std::string::npos) << text;
  }
  EXPECT_NE(mark_templates("\xEE\x80\x80").error, "");
}

TEST(Template, BecomesOursWhereOursSaysTheSame) {
  EXPECT_EQ(translated("a $V b").ours, "a ${V:-} b");
  EXPECT_EQ(translated("${V:-d${W}}").ours, "${V:-d${W:-}}");
  EXPECT_EQ(translated("${V:?why not}").ours, "${V:?why not}");
  EXPECT_EQ(translated("$${V}").ours, "$${V}") << "a literal";
  EXPECT_FALSE(translated("$${V}").has_variables);
  EXPECT_TRUE(translated("${V:-d}").differences.empty());
}

TEST(Template, SaysWhereOursBehavesOtherwise) {
  EXPECT_EQ(translated("${V-d}").ours, "${V:-d}");
  EXPECT_EQ(translated("${V-d}").differences.size(), 1U);
  EXPECT_TRUE(translated("${V-}").differences.empty()) << "empty either way";
  EXPECT_EQ(translated("${V?m}").differences.size(), 1U);
  EXPECT_EQ(translated("${V:+r}").unsayable, std::vector<std::string>{"V"});
  EXPECT_EQ(translated("$$${V}").unsayable, std::vector<std::string>{"V"}) << "a plain $ before a variable";
}

}  // namespace
}  // namespace sluice::cli::convert

#include "dynamo/signing/uri.hpp"

#include <gtest/gtest.h>

namespace sluice::dynamo {
namespace {

TEST(Uri, PathsAreNormalized) {
  const std::pair<std::string, std::string> cases[] = {{"", "/"},
                                                       {"/", "/"},
                                                       {"//", "/"},
                                                       {"/a", "/a"},
                                                       {"/a/", "/a/"},
                                                       {"//a//b//", "/a/b/"},
                                                       {"/./a", "/a"},
                                                       {"/a/.", "/a/"},
                                                       {"/a/./", "/a/"},
                                                       {"/a/..", "/"},
                                                       {"/a/b/..", "/a/"},
                                                       {"/a/b/../c", "/a/c"},
                                                       {"/../..", "/"},
                                                       {"/../a", "/a"},
                                                       {"/a/../../b", "/b"},
                                                       {"/..a/.b/c..", "/..a/.b/c.."},
                                                       {"a/b", "/a/b"}};
  for (const auto& [path, expected] : cases) {
    EXPECT_EQ(normalized_path(path), expected) << path;
  }
}

TEST(Uri, QueriesAreSortedByNameThenValue) {
  EXPECT_EQ(canonical_query(""), "");
  EXPECT_EQ(canonical_query("b=2&a=2&a=1"), "a=1&a=2&b=2");
  EXPECT_EQ(canonical_query("a-b=1&a=2"), "a=2&a-b=1") << "by name, not by the whole text";
  EXPECT_EQ(canonical_query("x&y="), "x=&y=");
  EXPECT_EQ(canonical_query("&&a=1&"), "a=1");
  EXPECT_EQ(canonical_query("a=b=c"), "a=b%3Dc");
  EXPECT_EQ(canonical_query("a=%20+%2f%zz%"), "a=%20%2B%2F%25zz%25");
}

TEST(Uri, UrlsAreTakenApart) {
  const Result<UrlParts> url = parse_url("https://h:8443/a/b?c=d?e");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->scheme, "https");
  EXPECT_EQ(url->host, "h:8443");
  EXPECT_EQ(url->path, "/a/b");
  EXPECT_EQ(url->query, "c=d?e");
  const Result<UrlParts> bare = parse_url("http://h?x=1");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->path, "/");
  EXPECT_EQ(bare->query, "x=1");
}

TEST(Uri, UrlsThatCannotBeUsedAreRefused) {
  for (const std::string url : {"", "http", "http:/h", "://h", "HTTPS://h", "http://", "http:///p", "http://:80",
                                "http://u:p@h", "http://h#f", "http://h\t", " http://h", "http://h/\x7f"}) {
    EXPECT_FALSE(parse_url(url).has_value()) << url;
  }
}

}  // namespace
}  // namespace sluice::dynamo

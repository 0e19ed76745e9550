#include "dynamo/codec/xml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::dynamo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kAnswer =
    "<?xml version=\"1.0\"?><a xmlns=\"x\"><b> 1 &lt;&#xe9;&#10;&amp;amp; "
    "</b><c><b>2</b></c><c><b>3</b><d></d></c><e/></a>";

TEST(Xml, FindsElementsAndTheirText) {
  EXPECT_EQ(xml_text(kAnswer, "b"), "1 <é\n&amp;");
  EXPECT_EQ(xml_inside(kAnswer, "c"), "<b>2</b>");
  EXPECT_EQ(xml_text(xml_inside(kAnswer, "c").value_or(""), "b"), "2");
  EXPECT_THAT(xml_each(kAnswer, "c"), ElementsAre("<b>2</b>", "<b>3</b><d></d>"));
  EXPECT_EQ(xml_text(kAnswer, "d"), "");
}

TEST(Xml, WhatIsNotThereIsNothing) {
  EXPECT_EQ(xml_text(kAnswer, "f"), std::nullopt);
  EXPECT_EQ(xml_text(kAnswer, "e"), std::nullopt);
  EXPECT_EQ(xml_text(kAnswer, "c"), std::nullopt) << "elements are no text";
  EXPECT_THAT(xml_each(kAnswer, "e"), IsEmpty());
  for (const char* text : {"", "<a>", "<a", "</a>", "<a></b>", "not xml"}) {
    EXPECT_EQ(xml_inside(text, "a"), std::nullopt) << text;
  }
}

TEST(Xml, AnEntityIsOneOfXmlsOwn) {
  for (const char* text : {"&", "&;", "&b;", "&#;", "&#x;", "&#xd800;", "&#x110000;", "&#0;", "&#12", "&#x1g;",
                           "&#99999999999;", "&amp"}) {
    EXPECT_EQ(xml_text("<a>x" + std::string(text) + "</a>", "a"), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sluice::dynamo

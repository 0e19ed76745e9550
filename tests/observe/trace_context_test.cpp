#include "host/observe/trace_context.hpp"

#include <gtest/gtest.h>

namespace sluice::observe {
namespace {

constexpr const char* kExample = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContext, IsReadAndWrittenAsW3cHasIt) {
  const auto context = parse_traceparent(kExample);
  ASSERT_TRUE(context);
  EXPECT_EQ(hex_of(context->trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(hex_of(context->span), "b7ad6b7169203331");
  EXPECT_EQ(context->span, 0xb7ad6b7169203331U);
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(format_traceparent(*context), kExample);
  EXPECT_EQ(low_half(context->trace), 0x8448eb211c80319cU);
}

TEST(TraceContext, TakesTheSampledFlagAloneFromTheFlags) {
  EXPECT_FALSE(parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")->sampled);
  EXPECT_FALSE(parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-fe")->sampled);
  EXPECT_TRUE(parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff")->sampled);
}

TEST(TraceContext, OfALaterVersionIsReadAsFarAsItIsKnown) {
  EXPECT_TRUE(parse_traceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
  EXPECT_TRUE(parse_traceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes-later"));
  EXPECT_FALSE(parse_traceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.what-comes-later"));
}

TEST(TraceContext, IsRefusedWhereItIsNotOne) {
  for (const char* text : {
           "",
           "00",
           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
           "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
           " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
       }) {
    EXPECT_FALSE(parse_traceparent(text)) << text;
  }
}

TEST(TraceContext, StateIsCarriedUnlessItCannotBe) {
  EXPECT_EQ(usable_tracestate("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"), "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7");
  EXPECT_EQ(usable_tracestate("a=1\r\nEvil: yes"), "");
  EXPECT_EQ(usable_tracestate(std::string(513, 'a')), "");
}

TEST(TraceScope, IsOfItsThreadAndNests) {
  EXPECT_EQ(TraceScope::current(), nullptr);
  {
    const TraceScope outer(*parse_traceparent(kExample));
    ASSERT_NE(TraceScope::current(), nullptr);
    {
      const TraceScope inner(*parse_traceparent("00-1af7651916cd43dd8448eb211c80319c-17ad6b7169203331-00"));
      EXPECT_EQ(TraceScope::current()->span, 0x17ad6b7169203331U);
    }
    EXPECT_EQ(TraceScope::current()->span, 0xb7ad6b7169203331U);
  }
  EXPECT_EQ(TraceScope::current(), nullptr);
}

}  // namespace
}  // namespace sluice::observe

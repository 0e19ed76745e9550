#include "xml.hpp"

#include <expat.h>

#include <climits>
#include <memory>
#include <utility>

namespace sns {
namespace {

constexpr std::size_t kMaxDepth = 32;

/// The elements that are open, outermost first.
struct Reader {
  XML_Parser parser = nullptr;
  std::vector<XmlElement> open;
  std::optional<XmlElement> root;
};

Reader& of(void* user) { return *static_cast<Reader*>(user); }

void on_start(void* user, const XML_Char* name, const XML_Char**) {
  Reader& reader = of(user);
  if (reader.open.size() >= kMaxDepth) {
    XML_StopParser(reader.parser, XML_FALSE);
    return;
  }
  reader.open.push_back({name, {}});
}

void on_end(void* user, const XML_Char*) {
  Reader& reader = of(user);
  XmlElement element = std::move(reader.open.back());
  reader.open.pop_back();
  if (reader.open.empty()) {
    reader.root = std::move(element);
  } else {
    reader.open.back().children.push_back(std::move(element));
  }
}

void on_text(void* user, const XML_Char* text, int length) {
  Reader& reader = of(user);
  if (!reader.open.empty()) {
    reader.open.back().text.append(text, static_cast<std::size_t>(length));
  }
}

// No answer of AWS has one, and what it could declare is of no use to us.
void on_document_type(void* user, const XML_Char*, const XML_Char*, const XML_Char*, int) {
  XML_StopParser(of(user).parser, XML_FALSE);
}

struct FreeParser {
  void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};

}  // namespace

const XmlElement* XmlElement::child(std::string_view wanted) const {
  for (const XmlElement& element : children) {
    if (element.name == wanted) {
      return &element;
    }
  }
  return nullptr;
}

std::string XmlElement::text_of(std::string_view wanted) const {
  const XmlElement* found = child(wanted);
  return found == nullptr ? std::string() : found->text;
}

const XmlElement* XmlElement::find(std::string_view wanted) const {
  if (name == wanted) {
    return this;
  }
  for (const XmlElement& element : children) {
    if (const XmlElement* found = element.find(wanted)) {
      return found;
    }
  }
  return nullptr;
}

std::optional<XmlElement> parse_xml(std::string_view text) {
  const std::unique_ptr<XML_ParserStruct, FreeParser> parser(XML_ParserCreate("UTF-8"));
  if (parser == nullptr || text.size() > INT_MAX) {
    return std::nullopt;
  }
  Reader reader{parser.get(), {}, {}};
  XML_SetUserData(parser.get(), &reader);
  XML_SetElementHandler(parser.get(), &on_start, &on_end);
  XML_SetCharacterDataHandler(parser.get(), &on_text);
  XML_SetStartDoctypeDeclHandler(parser.get(), &on_document_type);
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE) != XML_STATUS_OK) {
    return std::nullopt;
  }
  return std::move(reader.root);
}

}  // namespace sns

/* The adapter to toml++: the one file that knows it. */
#include <stdexcept>

/* What the parser takes for impossible is no reason to abort: the text is refused. */
[[noreturn]] static void give_up()
{
    throw std::logic_error("the parser gave up");
}
#define TOML_ASSERT(expr)      ((expr) ? static_cast<void>(0) : give_up())
#define TOML_EXCEPTIONS        0
#define TOML_HEADER_ONLY       1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

extern "C" {
#include "policy/document.h"
#include "policy/toml_scan.h"
}

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace
{

unsigned number(toml::source_index index)
{
    return static_cast<unsigned>(index);
}

class Reader
{
  public:
    explicit Reader(sp_document *document) : document_(document)
    {
    }

    void table(const toml::table &from, sp_node *to, unsigned depth)
    {
        struct Member {
            const toml::key *key;
            const toml::node *value;
        };
        std::vector<Member> members;
        for (auto &&[key, value] : from)
            members.push_back({&key, &value});
        /* toml++ sorts by name; people read errors in the order of the file. */
        std::stable_sort(
            members.begin(), members.end(), [](const Member &a, const Member &b) {
                auto x = a.key->source().begin, y = b.key->source().begin;
                return x.line != y.line ? x.line < y.line : x.column < y.column;
            });
        for (const Member &m : members) {
            sp_node *node = value(*m.value, to, depth);
            if (node == nullptr)
                return;
            std::string_view name = m.key->str();
            node->key = sp_document_text(document_, name.data(), name.size());
            node->key_line = number(m.key->source().begin.line);
            node->key_column = number(m.key->source().begin.column);
        }
    }

  private:
    sp_node *value(const toml::node &from, sp_node *parent, unsigned depth)
    {
        sp_node *node = sp_document_add(document_, parent, type_of(from));
        if (node == nullptr)
            return nullptr;
        node->line = number(from.source().begin.line);
        node->column = number(from.source().begin.column);
        if (depth >= SP_DOCUMENT_DEPTH_MAX && (from.is_table() || from.is_array()))
            document_->failed = true;
        else if (const toml::table *t = from.as_table())
            table(*t, node, depth + 1);
        else if (const toml::array *a = from.as_array())
            for (const toml::node &item : *a)
                value(item, node, depth + 1);
        else if (const auto *s = from.as_string())
            text(s->get(), node);
        else if (const auto *i = from.as_integer())
            node->integer = i->get();
        else if (const auto *f = from.as_floating_point())
            node->number = f->get();
        else if (const auto *b = from.as_boolean())
            node->integer = b->get();
        return node;
    }

    void text(const std::string &from, sp_node *node)
    {
        node->text = sp_document_text(document_, from.data(), from.size());
        node->text_size = from.size();
    }

    static sp_node_type type_of(const toml::node &node)
    {
        switch (node.type()) {
        case toml::node_type::table:
            return SP_NODE_TABLE;
        case toml::node_type::array:
            return SP_NODE_LIST;
        case toml::node_type::string:
            return SP_NODE_TEXT;
        case toml::node_type::integer:
            return SP_NODE_INTEGER;
        case toml::node_type::floating_point:
            return SP_NODE_NUMBER;
        case toml::node_type::boolean:
            return SP_NODE_BOOL;
        default:
            return SP_NODE_OTHER;
        }
    }

    sp_document *document_;
};

/* The parser's own words: "Error while parsing WHAT: WHY". */
std::string readable(std::string text)
{
    const std::string begin = "Error while parsing ";
    size_t colon = text.find(": ");
    if (text.find("invalid utf-8") != std::string::npos)
        return "a byte is not UTF-8";
    if (text.find("control characters") != std::string::npos)
        return "a text holds a control character, or its end is missing";
    if (text.find("could not determine value type") != std::string::npos)
        return "this is no value (a text stands in quotes)";
    if (text.compare(0, begin.size(), begin) != 0 || colon == std::string::npos)
        return text;
    return text.substr(colon + 2) + ", in a " +
           text.substr(begin.size(), colon - begin.size());
}

} // namespace

static int parse(sp_document *document, const char *text, size_t size, sp_error *reterr)
{
    toml::parse_result result = toml::parse(std::string_view(text, size));
    if (!result) {
        const toml::parse_error &error = result.error();
        std::string why = readable(std::string(error.description()));
        int code =
            sp_fail(reterr, SP_E_POLICY,
                    "this is no TOML: %.300s; what follows was not read", why.c_str());
        if (reterr != nullptr) {
            reterr->line = static_cast<int>(number(error.source().begin.line));
            reterr->column = static_cast<int>(number(error.source().begin.column));
        }
        return code;
    }
    sp_node *root = sp_document_add(document, nullptr, SP_NODE_TABLE);
    if (root != nullptr)
        Reader(document).table(result.table(), root, 0);
    if (document->failed)
        return sp_fail(reterr, SP_E_POLICY, "it is too large or nested too deep");
    return 0;
}

extern "C" int sp_document_parse_toml(sp_document *document, const char *text,
                                      size_t size, sp_error *reterr)
{
    int code = sp_toml_scan(text, size, reterr);
    if (code != 0)
        return code;
    try {
        return parse(document, text, size, reterr);
    } catch (const std::exception &e) { /* no memory, or a fault of the parser's */
        return sp_fail(reterr, SP_E_POLICY, "this cannot be read as TOML: %.200s",
                       e.what());
    }
}

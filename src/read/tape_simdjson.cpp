/* The adapter: walks a line with simdjson's on-demand parser and lays its values out as
 * nodes. Strings are unescaped here, since simdjson refuses lone surrogates, which stand for
 * bytes that are no UTF-8 in our traces.
 */
#include "read/tape.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include "trace/format.h"
#include "trace/lines.h"

namespace ondemand = simdjson::ondemand;

static_assert(SP_LINES_PADDING >= simdjson::SIMDJSON_PADDING,
              "lines are padded too little");

namespace
{

class Walk
{
  public:
    explicit Walk(sp_tape *tape) : t(tape)
    {
    }

    sp_tape_result object(ondemand::object object, unsigned depth);

  private:
    sp_tape *t;

    sp_tape_result add(sp_json_type type, uint32_t *ret_index);
    sp_tape_result value(ondemand::value value, unsigned depth);
    sp_tape_result array(ondemand::array array, unsigned depth);
    sp_tape_result number(ondemand::value &value);
    sp_tape_result string(const char *start, size_t size);
    sp_tape_result key(const char *start);
    bool unescape(const char *from, size_t size, sp_json_node *node);
};

sp_tape_result Walk::add(sp_json_type type, uint32_t *ret_index)
{
    if (t->count == t->capacity) {
        if (t->count >= SP_TAPE_NODES_MAX)
            return SP_TAPE_TOO_MUCH;
        const uint32_t capacity = t->capacity == 0 ? 256 : t->capacity * 2;
        void *nodes = realloc(t->nodes, capacity * sizeof *t->nodes);
        if (nodes == nullptr)
            return SP_TAPE_NO_MEMORY;
        t->nodes = static_cast<sp_json_node *>(nodes);
        t->capacity = capacity;
    }
    const uint32_t index = t->count++;
    sp_json_node &node = t->nodes[index];
    node.type = static_cast<uint8_t>(type);
    node.next = t->count;
    node.size = 0;
    node.natural = 0;
    *ret_index = index;
    return SP_TAPE_OK;
}

bool hex4(const char *p, uint32_t *ret_value)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = static_cast<uint32_t>(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = static_cast<uint32_t>(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = static_cast<uint32_t>(c - 'A' + 10);
        else
            return false;
        v = v << 4 | digit;
    }
    *ret_value = v;
    return true;
}

char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = static_cast<char>(c);
    } else if (c < 0x800) {
        *to++ = static_cast<char>(0xc0 | c >> 6);
        *to++ = static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = static_cast<char>(0xe0 | c >> 12);
        *to++ = static_cast<char>(0x80 | (c >> 6 & 0x3f));
        *to++ = static_cast<char>(0x80 | (c & 0x3f));
    } else {
        *to++ = static_cast<char>(0xf0 | c >> 18);
        *to++ = static_cast<char>(0x80 | (c >> 12 & 0x3f));
        *to++ = static_cast<char>(0x80 | (c >> 6 & 0x3f));
        *to++ = static_cast<char>(0x80 | (c & 0x3f));
    }
    return to;
}

/* What follows "\u". Moves *from behind it; nullptr when it is malformed. */
char *put_unicode(char *to, const char **from, const char *end)
{
    uint32_t c;
    if (end - *from < 4 || !hex4(*from, &c))
        return nullptr;
    *from += 4;
    if (c >= 0xdc80 && c <= 0xdcff) {
        *to = static_cast<char>(c & 0xff);
        return to + 1;
    }
    uint32_t low;
    if (c >= 0xd800 && c < 0xdc00 && end - *from >= 6 && (*from)[0] == '\\' &&
        (*from)[1] == 'u' && hex4(*from + 2, &low) && low >= 0xdc00 && low < 0xe000) {
        *from += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_utf8(to, c);
}

/* Into the tape's own text, which has room: a string never grows by unescaping. */
bool Walk::unescape(const char *from, size_t size, sp_json_node *node)
{
    const char *end = from + size;
    char *start = t->text + t->text_used;
    char *to = start;
    while (from < end) {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        static const char plain[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
        if (++from == end)
            return false;
        const char c = *from++;
        if (c == 'u') {
            to = put_unicode(to, &from, end);
            if (to == nullptr)
                return false;
            continue;
        }
        size_t i = 0;
        while (i + 1 < sizeof plain && plain[i] != c)
            i += 2;
        if (i + 1 >= sizeof plain)
            return false;
        *to++ = plain[i + 1];
    }
    node->text = start;
    node->size = static_cast<uint32_t>(to - start);
    t->text_used += node->size;
    return true;
}

sp_tape_result Walk::string(const char *start, size_t size)
{
    uint32_t index;
    const sp_tape_result result = add(SP_JSON_STRING, &index);
    if (result != SP_TAPE_OK)
        return result;
    sp_json_node &node = t->nodes[index];
    if (memchr(start, '\\', size) != nullptr)
        return unescape(start, size, &node) ? SP_TAPE_OK : SP_TAPE_MALFORMED;
    node.text = start;
    node.size = static_cast<uint32_t>(size);
    return SP_TAPE_OK;
}

/* A name, from behind its opening quote; that it is closed was checked by the first pass. */
sp_tape_result Walk::key(const char *start)
{
    const char *p = start;
    while (*p != '"')
        p += *p == '\\' ? 2 : 1;
    return string(start, static_cast<size_t>(p - start));
}

sp_tape_result Walk::number(ondemand::value &value)
{
    ondemand::number number;
    uint32_t index;
    if (value.get_number().get(number) != simdjson::SUCCESS)
        return SP_TAPE_MALFORMED;
    const sp_tape_result result = add(SP_JSON_INT, &index);
    if (result != SP_TAPE_OK)
        return result;
    sp_json_node &node = t->nodes[index];
    switch (number.get_number_type()) {
    case ondemand::number_type::signed_integer:
        node.integer = number.get_int64();
        break;
    case ondemand::number_type::unsigned_integer:
        node.type = number.get_uint64() > INT64_MAX ? SP_JSON_UINT : SP_JSON_INT;
        node.natural = number.get_uint64();
        break;
    default:
        node.type = SP_JSON_REAL;
        node.real = number.get_double();
    }
    return SP_TAPE_OK;
}

sp_tape_result Walk::array(ondemand::array array, unsigned depth)
{
    uint32_t index;
    uint32_t size = 0;
    if (depth == SP_TAPE_DEPTH_MAX)
        return SP_TAPE_TOO_MUCH;
    sp_tape_result result = add(SP_JSON_ARRAY, &index);
    if (result != SP_TAPE_OK)
        return result;
    for (auto element : array) {
        ondemand::value item;
        if (element.get(item) != simdjson::SUCCESS)
            return SP_TAPE_MALFORMED;
        result = value(item, depth + 1);
        if (result != SP_TAPE_OK)
            return result;
        size++;
    }
    t->nodes[index].next = t->count;
    t->nodes[index].size = size;
    return SP_TAPE_OK;
}

sp_tape_result Walk::value(ondemand::value value, unsigned depth)
{
    ondemand::json_type type;
    if (value.type().get(type) != simdjson::SUCCESS)
        return SP_TAPE_MALFORMED;
    uint32_t index;
    sp_tape_result result;
    switch (type) {
    case ondemand::json_type::string: {
        /* The token reaches up to what comes next: blanks may follow the closing quote. */
        const std::string_view token = value.raw_json_token();
        const size_t close = token.rfind('"');
        ondemand::raw_json_string consumed;
        if (close == 0 || close == std::string_view::npos ||
            value.get_raw_json_string().get(consumed) != simdjson::SUCCESS)
            return SP_TAPE_MALFORMED;
        return string(token.data() + 1, close - 1);
    }
    case ondemand::json_type::number:
        return number(value);
    case ondemand::json_type::object: {
        ondemand::object inner;
        if (value.get_object().get(inner) != simdjson::SUCCESS)
            return SP_TAPE_MALFORMED;
        return object(inner, depth);
    }
    case ondemand::json_type::array: {
        ondemand::array inner;
        if (value.get_array().get(inner) != simdjson::SUCCESS)
            return SP_TAPE_MALFORMED;
        return array(inner, depth);
    }
    case ondemand::json_type::boolean: {
        bool boolean;
        if (value.get_bool().get(boolean) != simdjson::SUCCESS)
            return SP_TAPE_MALFORMED;
        result = add(SP_JSON_BOOL, &index);
        if (result == SP_TAPE_OK)
            t->nodes[index].boolean = boolean;
        return result;
    }
    default: {
        bool null = false;
        if (value.is_null().get(null) != simdjson::SUCCESS || !null)
            return SP_TAPE_MALFORMED;
        return add(SP_JSON_NULL, &index);
    }
    }
}

sp_tape_result Walk::object(ondemand::object object, unsigned depth)
{
    uint32_t index;
    uint32_t size = 0;
    if (depth == SP_TAPE_DEPTH_MAX)
        return SP_TAPE_TOO_MUCH;
    sp_tape_result result = add(SP_JSON_OBJECT, &index);
    if (result != SP_TAPE_OK)
        return result;
    for (auto member : object) {
        ondemand::field field;
        if (std::move(member).get(field) != simdjson::SUCCESS)
            return SP_TAPE_MALFORMED;
        result = key(field.key().raw());
        if (result == SP_TAPE_OK)
            result = value(field.value(), depth + 1);
        if (result != SP_TAPE_OK)
            return result;
        size++;
    }
    t->nodes[index].next = t->count;
    t->nodes[index].size = size;
    return SP_TAPE_OK;
}

sp_tape_result make_room(sp_tape *t, size_t size)
{
    t->count = 0;
    t->text_used = 0;
    if (t->text_capacity < size) {
        char *text = static_cast<char *>(realloc(t->text, size));
        if (text == nullptr)
            return SP_TAPE_NO_MEMORY;
        t->text = text;
        t->text_capacity = size;
    }
    if (t->parser == nullptr)
        t->parser = new (std::nothrow) ondemand::parser(SP_TRACE_LINE_MAX);
    return t->parser == nullptr ? SP_TAPE_NO_MEMORY : SP_TAPE_OK;
}

} // namespace

void sp_tape_init(sp_tape *t)
{
    *t = sp_tape{};
}

void sp_tape_release(sp_tape *t)
{
    delete static_cast<ondemand::parser *>(t->parser);
    free(t->nodes);
    free(t->text);
    *t = sp_tape{};
}

sp_tape_result sp_tape_parse(sp_tape *t, const char *line, size_t size)
{
    sp_tape_result result = make_room(t, size);
    if (result != SP_TAPE_OK)
        return result;
    auto &parser = *static_cast<ondemand::parser *>(t->parser);
    ondemand::document document;
    const auto error =
        parser
            .iterate(simdjson::padded_string_view(line, size, size + SP_LINES_PADDING))
            .get(document);
    if (error == simdjson::MEMALLOC)
        return SP_TAPE_NO_MEMORY;
    ondemand::object object;
    if (error != simdjson::SUCCESS ||
        document.get_object().get(object) != simdjson::SUCCESS)
        return SP_TAPE_MALFORMED;
    result = Walk(t).object(object, 0);
    if (result == SP_TAPE_OK &&
        document.current_location().error() != simdjson::OUT_OF_BOUNDS)
        return SP_TAPE_MALFORMED;
    return result;
}

#include "supervise/hosts.h"

#include <stdlib.h>
#include <string.h>

void sp_hosts_release(struct sp_hosts *hosts)
{
    free(hosts->items);
    *hosts = (struct sp_hosts){0};
}

bool sp_host_normal(const char *name, char to[SP_HOST_BYTES])
{
    size_t size = strnlen(name, SP_HOST_BYTES);
    if (size > 0 && size < SP_HOST_BYTES && name[size - 1] == '.')
        size--;
    if (size == 0 || size >= SP_HOST_BYTES)
        return false;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c <= ' ' || c >= 0x7f)
            return false;
        to[i] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    to[size] = '\0';
    return true;
}

static bool is(const struct sp_host_entry *item, const char *name,
               const uint8_t address[16])
{
    return memcmp(item->address, address, 16) == 0 && strcmp(item->name, name) == 0;
}

void sp_hosts_add(struct sp_hosts *hosts, const char *name, const uint8_t address[16])
{
    if (hosts->items == NULL)
        hosts->items = calloc(SP_HOSTS_MAX, sizeof *hosts->items);
    size_t size = strlen(name) + 1;
    if (hosts->items == NULL || size > SP_HOST_BYTES)
        return;
    for (unsigned i = 0; i < hosts->count; i++)
        if (is(&hosts->items[i], name, address))
            return;
    struct sp_host_entry *item = &hosts->items[hosts->next];
    memcpy(item->address, address, 16);
    memcpy(item->name, name, size);
    hosts->next = (hosts->next + 1) % SP_HOSTS_MAX;
    if (hosts->count < SP_HOSTS_MAX)
        hosts->count++;
}

const char *const *sp_hosts_of(struct sp_hosts *hosts, const uint8_t address[16])
{
    unsigned found = 0;
    for (unsigned i = 0; i < hosts->count && found < SP_HOSTS_OF_ONE; i++)
        if (memcmp(hosts->items[i].address, address, 16) == 0)
            hosts->found[found++] = hosts->items[i].name;
    hosts->found[found] = NULL;
    return hosts->found;
}

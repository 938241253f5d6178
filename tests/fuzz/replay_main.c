/* Runs a fuzz target on files and on all files of folders, so that a corpus is an ordinary test with
 * any compiler; with --mutate N also on N random variants of each. A fuzzing engine (libFuzzer:
 * clang -fsanitize=fuzzer) brings a main of its own instead.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX (16u << 20)

static unsigned long mutations;
static unsigned long inputs;

static void mutate(uint8_t *data, size_t *size)
{
    static const char *const tokens[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         "\"",
                                         "\\",
                                         "\n",
                                         "0",
                                         "-1",
                                         "\\ud800",
                                         "4097",
                                         "\"kind\":\"run\"",
                                         "=",
                                         "'",
                                         "\"\"\"",
                                         "[[",
                                         "**/",
                                         "{work}",
                                         "_add",
                                         "[fs]\n",
                                         "\xff",
                                         "1e999"};
    for (int changes = 1 + rand() % 4; changes > 0 && *size > 40; changes--) {
        const size_t at = (size_t)rand() % (*size - 20);
        const size_t length = 1 + (size_t)rand() % 16;
        const char *token = tokens[(size_t)rand() % (sizeof tokens / sizeof *tokens)];
        switch (rand() % 4) {
        case 0:
            data[at] ^= (uint8_t)(1u << rand() % 8);
            break;
        case 1:
            memmove(data + at, data + at + length, *size - at - length);
            *size -= length;
            break;
        case 2:
            memcpy(data + at, token, strlen(token));
            break;
        default:
            memmove(data + at, data + (size_t)rand() % (*size - 20), length);
        }
    }
}

static void run(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(INPUT_MAX);
    uint8_t *copy = malloc(INPUT_MAX);
    if (file == NULL || data == NULL || copy == NULL) {
        perror(path);
        exit(1);
    }
    const size_t size = fread(data, 1, INPUT_MAX, file);
    fclose(file);
    inputs++;
    LLVMFuzzerTestOneInput(data, size);
    for (unsigned long i = 0; i < mutations; i++) {
        size_t changed = size;
        memcpy(copy, data, size);
        mutate(copy, &changed);
        LLVMFuzzerTestOneInput(copy, changed);
    }
    free(data);
    free(copy);
}

static void run_folder(const char *path)
{
    char name[4096];
    DIR *folder = opendir(path);
    if (folder == NULL) {
        run(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.' && snprintf(name, sizeof name, "%s/%s", path,
                                                entry->d_name) < (int)sizeof name)
            run(name);
    closedir(folder);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--mutate") == 0 && i + 1 < argc)
            mutations = strtoul(argv[++i], NULL, 10);
        else
            run_folder(argv[i]);
    }
    printf("%lu inputs\n", inputs);
    return inputs == 0;
}

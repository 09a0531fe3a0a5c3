/* phantom: the same specimen however it is cut, and one that looks as promised. */
#include "op/params.h"
#include "support/apply.h"
#include "support/test.h"

static const char *const specimens[] = {
    "kind=foam; shape=[40,60,70]; size=20",
    "kind=foam; shape=[90,100]",
    "kind=foam; shape=[30,20,33]; size=4",
    "kind=cells; shape=[30,60,90]",
    "kind=cells; shape=[90,100]; seed=7",
    "kind=cells; shape=[21,22,23]; size=5",
    "kind=t1; shape=[30,40,30]",
    "kind=t1; shape=[60,300]",
    "kind=t1; shape=[1,1,5]; noise=0",
    "kind=noise; shape=[10,20,70]; seed=-3",
    "kind=foam; shape=[24,24,24]; size=13; noise=0",
};

TEST(phantom_is_the_same_on_any_lattice) {
    char message[256];
    for (int i = 0; i < FV_COUNT(specimens); i++)
        CHECK_MESSAGE(test_conforms("phantom", specimens[i], NULL, 0, 12, message), "%s: %s", specimens[i], message);
}

TEST(phantom_has_the_same_bits_on_every_instruction_set) {
    char message[256];
    for (int i = 0; i < FV_COUNT(specimens); i++)
        CHECK_MESSAGE(test_same_on_every_isa("phantom", specimens[i], NULL, 0, message), "%s: %s", specimens[i], message);
}

TEST(phantom_keeps_its_bits_from_version_to_version) { /* if this must change, raise the operator's version */
    fv_hasher hasher;
    fv__hasher_init(&hasher);
    for (int i = 0; i < FV_COUNT(specimens); i++) {
        test_output out;
        CHECK(test_apply("phantom", specimens[i], NULL, 0, NULL, 0, &out, NULL) == FV_OK);
        fv__hasher_add(&hasher, out.data, (size_t)fv_image_type_bytes(&out.type.image));
        test_output_free(&out);
    }
    char text[33];
    fv__hash_format(fv__hasher_finish(&hasher), text);
    CHECK_TEXT(text, "08ef82e5fc6a94583f8894424876ddbd");
}

/* Share of voxels of the specimen that lie from low to below high. */
static double share(const char *params, double low, double high) {
    test_output out;
    if (test_apply("phantom", params, NULL, 0, NULL, 0, &out, NULL) != FV_OK) return -1;
    int64_t n = fv_image_type_voxels(&out.type.image), hits = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = out.type.image.dtype == FV_UINT8   ? ((uint8_t *)out.data)[i]
                   : out.type.image.dtype == FV_INT16 ? ((int16_t *)out.data)[i]
                                                      : (double)((float *)out.data)[i];
        hits += v >= low && v < high;
    }
    test_output_free(&out);
    return (double)hits / (double)n;
}

TEST(foam_is_dark_gas_between_bright_walls) {
    double gas = share("kind=foam; shape=[60,200,200]", 0, 40), walls = share("kind=foam; shape=[60,200,200]", 150, 256);
    CHECK_MESSAGE(gas > 0.6 && gas < 0.9, "gas is %g", gas);
    CHECK_MESSAGE(walls > 0.08 && walls < 0.3, "walls are %g", walls);
}

TEST(cells_are_bright_on_a_dark_ground) {
    double ground = share("kind=cells; shape=[300,300]", 0, 40), bright = share("kind=cells; shape=[300,300]", 80, 256);
    CHECK_MESSAGE(ground > 0.4 && ground < 0.8 && bright > 0.15 && bright < 0.5, "ground %g, bright %g", ground, bright);
}

TEST(t1_has_air_and_both_matters) {
    const char *head = "kind=t1; shape=[60,70,60]";
    double      air = share(head, 0, 40), grey = share(head, 430, 600), white = share(head, 650, 900);
    CHECK_MESSAGE(air > 0.4 && air < 0.75 && grey > 0.05 && white > 0.08, "air %g, grey %g, white %g", air, grey, white);
}

TEST(noise_is_uniform) {
    for (int i = 0; i < 10; i++) {
        double part = share("kind=noise; shape=[64,64,64]", i * 0.1, i * 0.1 + 0.1);
        CHECK_MESSAGE(part > 0.097 && part < 0.103, "a tenth holds %g", part);
    }
}

TEST(without_noise_nothing_flickers) {
    test_output out;
    CHECK(test_apply("phantom", "kind=cells; shape=[100,100]; noise=0", NULL, 0, NULL, 0, &out, NULL) == FV_OK);
    int64_t ground = 0;
    for (int i = 0; i < 10000; i++) ground += ((uint8_t *)out.data)[i] == 16;
    test_output_free(&out);
    CHECK_MESSAGE(ground > 3000, "%lld voxels of plain ground", (long long)ground);
}

TEST(another_seed_is_another_specimen) {
    test_output a, b;
    CHECK(test_apply("phantom", "kind=foam; shape=[200,200]; noise=0; seed=1", NULL, 0, NULL, 0, &a, NULL) == FV_OK);
    CHECK(test_apply("phantom", "kind=foam; shape=[200,200]; noise=0; seed=2", NULL, 0, NULL, 0, &b, NULL) == FV_OK);
    int64_t differ = 0;
    for (int i = 0; i < 40000; i++) differ += ((uint8_t *)a.data)[i] != ((uint8_t *)b.data)[i];
    test_output_free(&a);
    test_output_free(&b);
    CHECK_MESSAGE(differ > 4000, "only %lld voxels differ", (long long)differ);
}

TEST(a_far_corner_of_a_huge_volume_is_made_alone) {
    const fv_op *op = fv__op_find("phantom");
    fv_arena     arena = { 0 };
    void        *params = fv__arena_alloc(&arena, op->params_size);
    fv_type      type = { .kind = FV_KIND_IMAGE };
    fv_image_type_init(&type.image, FV_UINT8, 3, (int64_t[]){ (int64_t)1 << 40, 1 << 20, 1 << 20 });
    fv_region region = { 3, { ((int64_t)1 << 40) - 32, (1 << 20) - 64, (1 << 20) - 100 }, { 32, 64, 100 } };
    uint8_t  *data = fv__alloc(32 * 64 * 100);
    fv_block  block;
    fv__block_init(&block, FV_UINT8, &region, data);
    fv__params_default(op, params); /* kind 0 is foam */
    fv_run   r = { .need = { .params = params, .out = &type, .region = region }, .out = &block, .chunk = -1 };
    fv_error error;
    CHECK_INT(op->passes[0].run(&r, &error), FV_OK);
    int64_t gas = 0;
    for (int i = 0; i < 32 * 64 * 100; i++) gas += data[i] < 40;
    free(data);
    fv__arena_release(&arena);
    CHECK_MESSAGE(gas > 32 * 64 * 30 && gas < 32 * 64 * 99, "%lld voxels of gas", (long long)gas);
}

static bool refused(const char *params, const char *part) {
    test_output out;
    fv_error    error = { 0 };
    bool ok = test_apply("phantom", params, NULL, 0, NULL, 0, &out, &error) == FV_ERROR_USAGE && strstr(error.message, part);
    if (!ok) printf("# %s: %s\n", params, error.message);
    return ok;
}

TEST(phantom_refuses_what_it_cannot_make) {
    CHECK(refused("kind=horse; shape=[3,3]", "foam|cells|t1|noise"));
    CHECK(refused("kind=foam; shape=[3]", "1 axis"));
    CHECK(refused("kind=foam; shape=[3,3,3,3]", "axes"));
    CHECK(refused("kind=foam; shape=[3,2.5]", "2.5"));
    CHECK(refused("kind=foam; shape=[3,3]; size=2", "at least 4"));
    CHECK(refused("kind=foam; shape=[3,3]; noise=-1", "noise"));
    CHECK(refused("kind=noise; shape=[1e15,1e15,1e15]", "counted"));
}

TEST_MAIN

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of float_pairs_avx512.c: rows of 32 entries, which two registers hold.
 *
 * Cells of a function f divide a >= 0.  The number of a's cell is the exponent's low 2 bits and the mantissa's leading
 * 3 bits of a + 5/8: cells are 1/16 wide before a = 3/8, and 1 from 7.375 on.  There, with d = a - centre,
 *
 *     f(a) = c0 + d (c1 + d (c2 + d (c3 + d (c4 + d (c5 + d c6)))))
 *
 * within 2^-33 of the value.  Rows: centre, c0 to c6.  The centre is the float near the cell's middle, of 2^21 at
 * random, for which f and f' lie nearest to floats, c0 and c1, so that these need no second part; d is exact.  c2 to c6
 * minimize the greatest relative error (Lawson's weights), each rounded before the next ones are found.  The first cell
 * begins at its centre: at 0 for tanh, where c0 = 0, c1 = 1 and c2 = 0, and just above 0 for erfc.
 */
#ifndef TQ_KERNELS_FLOAT_CELLS_H
#define TQ_KERNELS_FLOAT_CELLS_H

#include <stdint.h>

enum { CELL_COEFFICIENTS = 7, CELL_ROWS = CELL_COEFFICIENTS + 1 };

/* clang-format off */

/* 2^(i/32) rounded to a float: its bits less i << 18, so that adding k << 18 gives those of 2^(k/32) for k % 32 == i;
   and the part of itself by which 2^(i/32) is greater. */
static const uint32_t power_bits[32] = {
    0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f, 0x3f7b95c2, 0x3f7aa43a, 0x3f79c3d3, 0x3f78f4f0, 0x3f7837f0,
    0x3f778d3a, 0x3f76f532, 0x3f767043, 0x3f75fed7, 0x3f75a15b, 0x3f75583f, 0x3f7523f6, 0x3f7504f3, 0x3f74fbaf,
    0x3f7508a4, 0x3f752c4d, 0x3f75672a, 0x3f75b9be, 0x3f76248c, 0x3f76a81e, 0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf,
    0x3f79b907, 0x3f7ac0c7, 0x3f7be4ba, 0x3f7d257d, 0x3f7e83b3
};
static const float power_rest[32] = {
    0, -0x1.947416p-25f, 0x1.8d96d2p-25f, -0x1.dda2fep-25f, -0x1.9c0c22p-27f, -0x1.a2fbb4p-25f, 0x1.964902p-25f,
    -0x1.2b0dbcp-25f, 0x1.125002p-25f, -0x1.cde8cep-26f, 0x1.370be4p-25f, 0x1.336de2p-30f, -0x1.0a3552p-25f,
    -0x1.c541b6p-26f, -0x1.00d8acp-27f, -0x1.6cb284p-25f, 0x1.26055cp-26f, 0x1.8b2bb8p-26f, -0x1.05cb44p-25f,
    -0x1.1c2142p-26f, 0x1.67a1cap-28f, -0x1.348e58p-25f, 0x1.a3b5e4p-28f, -0x1.0b7ec8p-25f, -0x1.f9c306p-27f,
    -0x1.e4c886p-26f, -0x1.6961b4p-28f, -0x1.b5151ep-28f, -0x1.a5217cp-28f, -0x1.ab7132p-26f, 0x1.61428ep-28f,
    -0x1.2ad5f8p-27f
};

/* tanh(a), to 9.1. */
static const float tanh_cells[CELL_ROWS][32] = {
    {
        0x1.80ec28p0f, 0x1.bcc8ecp0f, 0x1.f9d3bp0f, 0x1.21fdd2p1f, 0x1.3f61ep1f, 0x1.61fb24p1f, 0x1.7f42bep1f,
        0x1.9f117p1f, 0x1.d09e26p1f, 0x1.0a0338p2f, 0x1.27bad6p2f, 0x1.48f0c4p2f, 0x1.673c46p2f, 0x1.881caep2f,
        0x1.a6f84p2f, 0x1.caa78p2f, 0x1.fe2804p2f, 0x1.154246p3f, 0, 0x1.76a0b8p-4f, 0x1.3b8016p-3f, 0x1.b8f7fep-3f,
        0x1.19ff8ap-2f, 0x1.6663fep-2f, 0x1.c02c54p-2f, 0x1.1b46cp-1f, 0x1.5fe81ep-1f, 0x1.9c6f1ep-1f, 0x1.da3296p-1f,
        0x1.105602p0f, 0x1.31aae2p0f, 0x1.4fa136p0f
    },
    {
        0x1.cfc4aap-1f, 0x1.e13e64p-1f, 0x1.ecb074p-1f, 0x1.f51724p-1f, 0x1.f9149cp-1f, 0x1.fbf56ep-1f, 0x1.fd704ep-1f,
        0x1.fe70b6p-1f, 0x1.ff47cp-1f, 0x1.ffbfb4p-1f, 0x1.ffe698p-1f, 0x1.fff7p-1f, 0x1.fffc82p-1f, 0x1.fffecp-1f,
        0x1.ffff86p-1f, 0x1.ffffd8p-1f, 0x1.fffff8p-1f, 0x1.fffffep-1f, 0, 0x1.75963p-4f, 0x1.390728p-3f,
        0x1.b24734p-3f, 0x1.131446p-2f, 0x1.5870b2p-2f, 0x1.a5977p-2f, 0x1.01854cp-1f, 0x1.31487cp-1f, 0x1.5590bep-1f,
        0x1.752586p-1f, 0x1.930136p-1f, 0x1.a9e44p-1f, 0x1.baa538p-1f
    },
    {
        0x1.6fae14p-3f, 0x1.dd51f4p-4f, 0x1.2f2522p-4f, 0x1.596358p-5f, 0x1.b7daeep-6f, 0x1.019f3p-6f, 0x1.470712p-7f,
        0x1.8eae4ep-8f, 0x1.703db2p-9f, 0x1.011fdap-10f, 0x1.9675eap-12f, 0x1.1ffd78p-13f, 0x1.befe7ap-15f,
        0x1.3fff9cp-16f, 0x1.e7ffc2p-18f, 0x1.3ffffp-19f, 0x1.000004p-21f, 0x1.ffffecp-24f, 0x1p0f, 0x1.fbbda2p-1f,
        0x1.f409ecp-1f, 0x1.e8fa54p-1f, 0x1.db0d6ep-1f, 0x1.c6121ep-1f, 0x1.a93692p-1f, 0x1.7e798cp-1f, 0x1.49f91ap-1f,
        0x1.1c228ap-1f, 0x1.e019a2p-2f, 0x1.85933p-2f, 0x1.3b7858p-2f, 0x1.02a11p-2f
    },
    {
        -0x1.4d0b26p-3f, -0x1.c0a5aap-4f, -0x1.23b628p-4f, -0x1.52075p-5f, -0x1.b1e928p-6f, -0x1.ff2d3ap-7f,
        -0x1.45643ap-7f, -0x1.8d775cp-8f, -0x1.6fb938p-9f, -0x1.00ffbep-10f, -0x1.9661bap-12f, -0x1.1ff886p-13f,
        -0x1.befb58p-15f, -0x1.3ffed2p-16f, -0x1.e7fd12p-18f, -0x1.3fff18p-19f, -0x1.00096ap-21f, -0x1.fffa14p-24f, 0,
        -0x1.727a9p-4f, -0x1.31b712p-3f, -0x1.9ec032p-3f, -0x1.fe7528p-3f, -0x1.317814p-2f, -0x1.5e2124p-2f,
        -0x1.80bf28p-2f, -0x1.897f38p-2f, -0x1.7b1aa6p-2f, -0x1.5de5dcp-2f, -0x1.32a448p-2f, -0x1.066a04p-2f,
        -0x1.bf30fep-3f
    },
    {
        0x1.6638c6p-4f, 0x1.06973ep-4f, 0x1.675276p-5f, 0x1.af64c2p-6f, 0x1.196d8ap-6f, 0x1.4f64d8p-7f, 0x1.ad8228p-8f,
        0x1.075ca6p-8f, 0x1.e8e6d4p-10f, 0x1.5651aep-11f, 0x1.0ece58p-12f, 0x1.7fe4e2p-14f, 0x1.29f608p-15f,
        0x1.aaa2cp-17f, 0x1.45531ep-18f, 0x1.aaa93ep-20f, 0x1.55462p-22f, 0x1.55517ep-24f, -0x1.55554ep-2f,
        -0x1.4a0bccp-2f, -0x1.35fee4p-2f, -0x1.1a030ep-2f, -0x1.f04712p-3f, -0x1.8fed12p-3f, -0x1.16a59ep-3f,
        -0x1.ebbccap-5f, 0x1.d492ecp-7f, 0x1.fbdfcap-5f, 0x1.7be48cp-4f, 0x1.be04d2p-4f, 0x1.c47ed6p-4f, 0x1.ac6462p-4f
    },
    {
        -0x1.99ccd4p-6f, -0x1.85073p-6f, -0x1.2e9346p-6f, -0x1.89b6dep-7f, -0x1.09f542p-7f, -0x1.44b9b2p-8f,
        -0x1.a4f4fp-9f, -0x1.042ddep-9f, -0x1.e61c3ap-11f, -0x1.55732ep-12f, -0x1.0e9d5cp-13f, -0x1.7fac88p-15f,
        -0x1.29fd04p-16f, -0x1.aa9da8p-18f, -0x1.4616ep-19f, -0x1.aace04p-21f, -0x1.52a1ecp-23f, -0x1.5673dcp-25f,
        -0x1.b87622p-17f, 0x1.e748a8p-5f, 0x1.89a3bp-4f, 0x1.01e13p-3f, 0x1.3052dap-3f, 0x1.519e7ap-3f, 0x1.5c25d6p-3f,
        0x1.3e4046p-3f, 0x1.e9d0dcp-4f, 0x1.4ffdd2p-4f, 0x1.7b508ap-5f, 0x1.cecd12p-7f, -0x1.aaf3ap-8f, -0x1.21143ap-6f
    },
    {
        -0x1.5446bep-9f, 0x1.ca448ep-9f, 0x1.39ad2p-8f, 0x1.00a2dp-8f, 0x1.79855p-9f, 0x1.e63bccp-10f, 0x1.437f0ep-10f,
        0x1.96725p-11f, 0x1.83b6ccp-12f, 0x1.122e9ap-13f, 0x1.b41586p-15f, 0x1.357ae2p-16f, 0x1.e0be38p-18f,
        0x1.58544p-19f, 0x1.05c662p-20f, 0x1.56e036p-22f, 0x1.165718p-24f, 0x1.13f19cp-26f, 0x1.122932p-3f,
        0x1.fb341ep-4f, 0x1.ba86eep-4f, 0x1.640494p-4f, 0x1.efb7f8p-5f, 0x1.bd5658p-6f, -0x1.8ecf1ep-8f,
        -0x1.537cd6p-5f, -0x1.f8f18cp-5f, -0x1.01b562p-4f, -0x1.bcec2cp-5f, -0x1.3e715ep-5f, -0x1.8f889cp-6f,
        -0x1.caeb06p-7f
    },
    {
        0x1.d1537cp-8f, 0x1.0888f2p-9f, -0x1.0c51cap-13f, -0x1.7d1d72p-11f, -0x1.850b66p-11f, -0x1.171306p-11f,
        -0x1.6b7744p-12f, -0x1.e8920ep-13f, -0x1.fd752ap-14f, -0x1.82b8f4p-15f, -0x1.1f635cp-16f, -0x1.a955a8p-18f,
        -0x1.390028p-19f, -0x1.cbeadcp-21f, -0x1.181e66p-22f, -0x1.daaec4p-24f, -0x1.c8de64p-26f, -0x1.351cap-28f,
        -0x1.26eddp-7f, 0x1.09931ep-7f, -0x1.9409e8p-4f, -0x1.425c5cp-4f, -0x1.031264p-2f, 0x1.ae6816p-7f,
        -0x1.fd126ep-5f, -0x1.10185p-5f, -0x1.da7b1cp-7f, 0x1.24f89cp-7f, 0x1.1f63p-6f, 0x1.159b12p-6f, 0x1.96d7eap-6f,
        0x1.d5e34ep-7f
    },
};

/* erfc(a) e^(a^2) as tq_erfcf approximates it, to 9.375. */
static const float erfc_cells[CELL_ROWS][32] = {
    {
        0x1.7cdb74p0f, 0x1.c04afap0f, 0x1.00ffd6p1f, 0x1.2300dcp1f, 0x1.400c86p1f, 0x1.607214p1f, 0x1.7ffa7ap1f,
        0x1.9ff6p1f, 0x1.cec338p1f, 0x1.065eaep2f, 0x1.25b34cp2f, 0x1.475f34p2f, 0x1.6602eap2f, 0x1.87edfcp2f,
        0x1.aaafa6p2f, 0x1.c967d2p2f, 0x1.f7697ep2f, 0x1.0f78bcp3f, 0x1.3c4p-10f, 0x1.8206d6p-4f, 0x1.45bff2p-3f,
        0x1.bf74f2p-3f, 0x1.25f0ep-2f, 0x1.5b4b8cp-2f, 0x1.c7b48cp-2f, 0x1.1f21ep-1f, 0x1.604e82p-1f, 0x1.a0fdb2p-1f,
        0x1.db00dep-1f, 0x1.0e66cep0f, 0x1.2f3038p0f, 0x1.4e2de8p0f
    },
    {
        0x1.4b5f48p-2f, 0x1.23a88p-2f, 0x1.04ac88p-2f, 0x1.d50ce6p-3f, 0x1.afac5ap-3f, 0x1.8c2b6ap-3f, 0x1.6e9cf6p-3f,
        0x1.54af2ep-3f, 0x1.34902p-3f, 0x1.121f44p-3f, 0x1.ec6118p-4f, 0x1.bb98aap-4f, 0x1.96ce16p-4f, 0x1.7484c6p-4f,
        0x1.56d90cp-4f, 0x1.404442p-4f, 0x1.23795cp-4f, 0x1.0e8c3ep-4f, 0x1.ff4dc4p-1f, 0x1.cdcbd8p-1f, 0x1.afa916p-1f,
        0x1.96b6a2p-1f, 0x1.7cb81ep-1f, 0x1.6abbep-1f, 0x1.4a3d66p-1f, 0x1.2bed84p-1f, 0x1.0faf0ap-1f, 0x1.efc5a8p-2f,
        0x1.caeb22p-2f, 0x1.a697d2p-2f, 0x1.872e0ap-2f, 0x1.6d2242p-2f
    },
    {
        -0x1.52f5aap-3f, -0x1.0bfa7ap-3f, -0x1.b2c6b4p-4f, -0x1.645d6cp-4f, -0x1.3072dcp-4f, -0x1.02757p-4f,
        -0x1.bd762p-5f, -0x1.82b8e2p-5f, -0x1.3f383p-5f, -0x1.fb04e8p-6f, -0x1.9addfp-6f, -0x1.4ebe24p-6f,
        -0x1.1a42bap-6f, -0x1.da748p-7f, -0x1.929fd8p-7f, -0x1.5fcb82p-7f, -0x1.23d682p-7f, -0x1.f766f6p-8f,
        -0x1.203f8cp0f, -0x1.eaafb4p-1f, -0x1.b86996p-1f, -0x1.90023ep-1f, -0x1.67287p-1f, -0x1.4baf1p-1f,
        -0x1.1bcce6p-1f, -0x1.e2a7e6p-2f, -0x1.97add6p-2f, -0x1.5be954p-2f, -0x1.2ff1fep-2f, -0x1.06ba2cp-2f,
        -0x1.c9c6f8p-3f, -0x1.945af8p-3f
    },
    {
        0x1.3ceeaap-4f, 0x1.c830bap-5f, 0x1.537f72p-5f, 0x1.ffac12p-6f, 0x1.986f16p-6f, 0x1.42b61ap-6f, 0x1.04495ep-6f,
        0x1.a8084cp-7f, 0x1.40ab5ep-7f, 0x1.c9bfep-8f, 0x1.50151p-8f, 0x1.f0e9b4p-9f, 0x1.8231e8p-9f, 0x1.2a88bap-9f,
        0x1.d3fb48p-10f, 0x1.7ef1a2p-10f, 0x1.21ff7ep-10f, 0x1.d144fcp-11f, 0x1.fe9cp-1f, 0x1.9f8d3ap-1f, 0x1.699c1p-1f,
        0x1.3f5146p-1f, 0x1.159f46p-1f, 0x1.f47ba2p-2f, 0x1.97e226p-2f, 0x1.492dfep-2f, 0x1.06d81p-2f, 0x1.a8d76p-3f,
        0x1.61df38p-3f, 0x1.222bf8p-3f, 0x1.e066bep-4f, 0x1.94da98p-4f
    },
    {
        -0x1.1336fap-5f, -0x1.6c13e8p-6f, -0x1.f51532p-7f, -0x1.5d967cp-7f, -0x1.061266p-7f, -0x1.835906p-8f,
        -0x1.259de6p-8f, -0x1.c26f32p-9f, -0x1.397804p-9f, -0x1.940ccep-10f, -0x1.0dc49ap-10f, -0x1.6b0abp-11f,
        -0x1.04a28ep-11f, -0x1.73588ap-12f, -0x1.0d44f4p-12f, -0x1.9d309ap-13f, -0x1.1e0a72p-13f, -0x1.ab44eep-14f,
        -0x1.8009bap-1f, -0x1.2d03b4p-1f, -0x1.fe86e2p-2f, -0x1.b852b6p-2f, -0x1.749eb8p-2f, -0x1.4915f4p-2f,
        -0x1.016382p-2f, -0x1.8d6668p-3f, -0x1.2e6baep-3f, -0x1.d26c3p-4f, -0x1.74c96p-4f, -0x1.23f208p-4f,
        -0x1.ce2222p-5f, -0x1.75a03ap-5f
    },
    {
        0x1.c0e3ecp-7f, 0x1.12d2aap-7f, 0x1.5fea4ep-8f, 0x1.c917b2p-9f, 0x1.4319dcp-9f, 0x1.c0a5dep-10f,
        0x1.40d6cap-10f, 0x1.d0356ap-11f, 0x1.2ac336p-11f, 0x1.5d30dcp-12f, 0x1.a96f32p-13f, 0x1.0535aep-13f,
        0x1.5b4e12p-14f, 0x1.c8bcaep-15f, 0x1.32d42p-15f, 0x1.ba6c56p-16f, 0x1.181ab8p-16f, 0x1.85b872p-17f,
        0x1.038888p-1f, 0x1.8302bap-2f, 0x1.40de0ep-2f, 0x1.0fd0a6p-2f, 0x1.c184c8p-3f, 0x1.856888p-3f, 0x1.25429cp-3f,
        0x1.b3674cp-4f, 0x1.3d8328p-4f, 0x1.d5cf12p-5f, 0x1.69fd64p-5f, 0x1.0f90dap-5f, 0x1.9d28dcp-6f, 0x1.426438p-6f
    },
    {
        -0x1.5b6acp-8f, -0x1.8c0066p-9f, -0x1.d9b7acp-10f, -0x1.20301cp-10f, -0x1.80ccd4p-11f, -0x1.f6d4b4p-12f,
        -0x1.5585dep-12f, -0x1.d46d56p-13f, -0x1.174b68p-13f, -0x1.28bbecp-14f, -0x1.4a6bc8p-15f, -0x1.733208p-16f,
        -0x1.c999c4p-17f, -0x1.163d2cp-17f, -0x1.5a5a9ep-18f, -0x1.d545c4p-19f, -0x1.11c9eep-19f, -0x1.5b03dap-20f,
        -0x1.c2868cp-2f, -0x1.c72bd6p-3f, -0x1.713b8ap-3f, -0x1.32226ap-3f, -0x1.ed1634p-4f, -0x1.9fc042p-4f,
        -0x1.3355eap-4f, -0x1.b8f5f8p-5f, -0x1.365cd2p-5f, -0x1.b8906ap-6f, -0x1.4648fap-6f, -0x1.da5248p-7f,
        -0x1.5d3f3p-7f, -0x1.056b5ap-7f
    },
    {
        0x1.e9a802p-10f, 0x1.11aebep-10f, 0x1.340d34p-11f, 0x1.67e164p-12f, 0x1.e94cc6p-13f, 0x1.00a5b8p-13f,
        0x1.faf48ep-15f, 0x1.89f168p-14f, 0x1.f6bc94p-16f, 0x1.dbed3p-17f, 0x1.dd808ep-18f, 0x1.0dd3b2p-18f,
        0x1.0d7dc4p-19f, 0x1.53321cp-20f, 0x1.a8538ep-21f, 0x1.033356p-22f, 0x1.06f33ap-22f, 0x1.ee10a8p-24f,
        0x1.f3a0c2p-1f, 0x1.c52442p-3f, 0x1.55a49ap-3f, -0x1.3dcfbep-2f, -0x1.ba99a6p-3f, -0x1.8fff9ap-4f,
        0x1.5fa53ep-5f, 0x1.d973ep-6f, 0x1.4b8d3p-6f, 0x1.866d98p-7f, 0x1.8a822cp-8f, 0x1.a2b6fcp-7f, 0x1.ea362p-8f,
        -0x1.980f96p-12f
    },
};

/* clang-format on */

#endif

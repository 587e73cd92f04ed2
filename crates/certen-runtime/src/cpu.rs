//! Instruction sets, and the second cache: what code is made for.
//!
//! By default it is what the processor has, detected and named feature by feature: a bare "native" would mean something
//! else on the next machine. `$CERTEN_CPU`, or a command's `--cpu`, asks for less. Flags are part of a cache entry's
//! key, so code for one set is never taken for another.

use std::env;
use std::fmt;
use std::fs;
use std::str::FromStr;
use std::sync::OnceLock;

use crate::error::RuntimeError;

/// The instruction set that code is made for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cpu {
    /// What every x86-64 processor has: vectors of 16 bytes.
    Sse2,
    /// With AVX2 and FMA: vectors of 32 bytes.
    Avx2,
    /// With AVX-512 (F, BW, CD, DQ, VL): vectors of 64 bytes.
    Avx512,
    /// All that this processor has.
    Native,
}

impl Cpu {
    const ALL: [Cpu; 4] = [Cpu::Sse2, Cpu::Avx2, Cpu::Avx512, Cpu::Native];

    /// What `$CERTEN_CPU` says, else [`Cpu::Native`].
    ///
    /// # Errors
    /// If the variable is set to something else, or to what this processor does not have.
    pub fn from_environment() -> Result<Cpu, RuntimeError> {
        let Some(value) = env::var_os("CERTEN_CPU").filter(|value| !value.is_empty()) else { return Ok(Cpu::Native) };
        let text = value.to_string_lossy();
        let cpu = text.parse().ok().filter(|cpu: &Cpu| cpu.is_here());
        cpu.ok_or_else(|| RuntimeError::Setting {
            name: "CERTEN_CPU",
            wanted: "an instruction set that this processor has: sse2, avx2, avx512 or native",
            found: text.into_owned(),
        })
    }

    /// The sets that this processor has, without [`Cpu::Native`]; none on other architectures than x86-64.
    pub fn here() -> Vec<Cpu> {
        [Cpu::Sse2, Cpu::Avx2, Cpu::Avx512].into_iter().filter(|cpu| cpu.is_here()).collect()
    }

    /// Whether this processor has all of it.
    pub fn is_here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        let (avx2, avx512) = (
            std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma"),
            std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512cd")
                && std::is_x86_feature_detected!("avx512dq")
                && std::is_x86_feature_detected!("avx512vl"),
        );
        #[cfg(not(target_arch = "x86_64"))]
        let (avx2, avx512) = (false, false);
        match self {
            Cpu::Sse2 => cfg!(target_arch = "x86_64"),
            Cpu::Avx2 => avx2,
            Cpu::Avx512 => avx2 && avx512,
            Cpu::Native => true,
        }
    }

    /// The bytes of its longest vectors.
    pub fn vector_bytes(self) -> usize {
        match self {
            Cpu::Sse2 => 16,
            Cpu::Avx2 => 32,
            Cpu::Avx512 => 64,
            Cpu::Native => Cpu::here().last().map_or(16, |cpu| cpu.vector_bytes()),
        }
    }

    /// The bytes that its arithmetic units take at a time: some make its longest vectors in two halves.
    pub fn unit_bytes(self) -> usize {
        let bytes = self.vector_bytes();
        if bytes == 64 && has_half_units() { 32 } else { bytes }
    }

    /// Whether it can multiply and add with one rounding.
    pub fn has_fma(self) -> bool {
        match self {
            Cpu::Sse2 => false,
            Cpu::Avx2 | Cpu::Avx512 => true,
            #[cfg(target_arch = "x86_64")]
            Cpu::Native => std::is_x86_feature_detected!("fma"),
            #[cfg(not(target_arch = "x86_64"))]
            Cpu::Native => cfg!(target_arch = "aarch64"),
        }
    }

    /// What the processor calls itself, where the system tells.
    pub fn model() -> Option<String> {
        let about = fs::read_to_string("/proc/cpuinfo").ok()?;
        let line = about.lines().find_map(|line| line.strip_prefix("model name"))?;
        Some(line.trim_start_matches([' ', '\t', ':']).trim_end().to_owned())
    }

    /// The features that code for it may use, beyond what every processor of its architecture has.
    pub fn features(self) -> Vec<&'static str> {
        self.flags().into_iter().map(|flag| flag.trim_start_matches("-m")).collect()
    }

    /// The compiler's flags: one for each feature.
    pub(crate) fn flags(self) -> Vec<&'static str> {
        const AVX2: [&str; 11] = [
            "-msse3", "-mssse3", "-msse4.1", "-msse4.2", "-mpopcnt", "-mlzcnt", "-mbmi", "-mbmi2", "-mavx", "-mavx2",
            "-mfma",
        ];
        const AVX512: [&str; 5] = ["-mavx512f", "-mavx512cd", "-mavx512bw", "-mavx512dq", "-mavx512vl"];
        match self {
            Cpu::Sse2 => Vec::new(),
            Cpu::Avx2 => AVX2.to_vec(),
            Cpu::Avx512 => [&AVX2[..], &AVX512].concat(),
            Cpu::Native => detected(),
        }
    }
}

/// Sizes of the second cache that are believed.
const L2_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=64 << 20;

/// What the second cache holds if nothing else is known.
const SOME_L2_BYTES: u64 = 1 << 20;

/// The bytes of the second cache: what `$CERTEN_L2_BYTES` says, else what the system says of the first processor.
///
/// # Errors
/// If the variable is set to something else.
pub fn l2_bytes() -> Result<u64, RuntimeError> {
    let Some(value) = env::var_os("CERTEN_L2_BYTES").filter(|value| !value.is_empty()) else {
        static DETECTED: OnceLock<u64> = OnceLock::new();
        let believed = || detected_l2_bytes().filter(|bytes| L2_BYTES.contains(bytes));
        return Ok(*DETECTED.get_or_init(|| believed().unwrap_or(SOME_L2_BYTES)));
    };
    let text = value.to_string_lossy();
    text.parse().ok().filter(|bytes| L2_BYTES.contains(bytes)).ok_or_else(|| RuntimeError::Setting {
        name: "CERTEN_L2_BYTES",
        wanted: "the bytes of the second cache, from 65536 to 67108864",
        found: text.into_owned(),
    })
}

/// What Linux says of the second cache.
fn detected_l2_bytes() -> Option<u64> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    caches.flatten().find_map(|cache| {
        let read = |name: &str| fs::read_to_string(cache.path().join(name)).ok();
        if read("level")?.trim() != "2" || read("type")?.trim() == "Instruction" {
            return None;
        }
        read("size")?.trim().strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1 << 10)
    })
}

/// Whether this processor is known to make vectors of 64 bytes in two halves: AMD's family 19h, Zen 4.
fn has_half_units() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        let vendor = __cpuid(0);
        let family = |version: u32| match (version >> 8 & 0xf, version >> 20 & 0xff) {
            (0xf, extended) => 0xf + extended,
            (family, _) => family,
        };
        // "AuthenticAMD", in three pieces.
        let is_amd = [vendor.ebx, vendor.edx, vendor.ecx] == [0x6874_7541, 0x6974_6e65, 0x444d_4163];
        is_amd && family(__cpuid(1).eax) == 0x19
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// One flag for each feature of this processor that compiled code can profit from.
fn detected() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let mut flags = Vec::new();
        macro_rules! detect {
            ($($feature:tt => $flag:literal),*) => {
                $(if std::is_x86_feature_detected!($feature) { flags.push($flag); })*
            };
        }
        detect! {
            "sse3" => "-msse3", "ssse3" => "-mssse3", "sse4.1" => "-msse4.1", "sse4.2" => "-msse4.2",
            "popcnt" => "-mpopcnt", "lzcnt" => "-mlzcnt", "bmi1" => "-mbmi", "bmi2" => "-mbmi2",
            "avx" => "-mavx", "avx2" => "-mavx2", "fma" => "-mfma",
            "avx512f" => "-mavx512f", "avx512cd" => "-mavx512cd", "avx512bw" => "-mavx512bw",
            "avx512dq" => "-mavx512dq", "avx512vl" => "-mavx512vl"
        }
        flags
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cpu::Sse2 => "sse2",
            Cpu::Avx2 => "avx2",
            Cpu::Avx512 => "avx512",
            Cpu::Native => "native",
        })
    }
}

impl FromStr for Cpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Cpu, String> {
        let found = Cpu::ALL.into_iter().find(|cpu| cpu.to_string() == text);
        found.ok_or_else(|| format!("`{text}` is no instruction set: sse2, avx2, avx512 or native"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_names() {
        for cpu in Cpu::ALL {
            assert_eq!(cpu.to_string().parse(), Ok(cpu));
        }
        assert!("mmx".parse::<Cpu>().is_err());
    }

    #[test]
    fn the_second_cache_has_a_size_that_is_believed() {
        let detected = detected_l2_bytes().filter(|bytes| L2_BYTES.contains(bytes)).unwrap_or(SOME_L2_BYTES);
        if env::var_os("CERTEN_L2_BYTES").is_none() {
            assert_eq!(l2_bytes().unwrap(), detected);
        }
    }

    #[test]
    fn what_the_processor_has_is_part_of_native() {
        let native = Cpu::Native.flags();
        for cpu in Cpu::here() {
            assert!(cpu.flags().iter().all(|flag| native.contains(flag)), "{cpu}");
            assert!(cpu.vector_bytes() <= Cpu::Native.vector_bytes());
        }
    }
}

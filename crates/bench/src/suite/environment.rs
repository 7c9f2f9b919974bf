use std::fs;

use super::Environment;
use super::stopwatch::Stopwatch;

impl Environment {
    /// The environment of this machine, now. Fields that the system does not report are empty.
    #[must_use]
    pub fn here() -> Self {
        let name = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        let cpuinfo = read("/proc/cpuinfo");
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        Self {
            host: text(name.nodename()),
            kernel: [name.sysname(), name.release(), name.version()].map(text).join(" "),
            cpu: field(&cpuinfo, "model name").unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(0, |count| count.get() as u64),
            memory_bytes: kib(&read("/proc/meminfo"), "MemTotal") * 1024,
            is_virtual: field(&cpuinfo, "flags").is_some_and(|flags| has(&flags, "hypervisor")),
            governor: Some(governor).filter(|governor| !governor.is_empty()),
            load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
            look_nanoseconds: Some(Stopwatch::new().look_nanoseconds()),
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let value = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value)
}

fn kib(text: &str, name: &str) -> u64 {
    let value = field(text, name).unwrap_or_default();
    value.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|each| each == word)
}

/// Bytes of memory that can be had without swapping, as the kernel estimates.
#[must_use]
pub fn memory_available_bytes() -> u64 {
    kib(&read("/proc/meminfo"), "MemAvailable") * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let here = Environment::here();
        assert!(here.kernel.starts_with("Linux "), "{}", here.kernel);
        assert!(here.cpus > 0 && here.memory_bytes > 1 << 20, "{here:?}");
        assert!(memory_available_bytes() <= here.memory_bytes);
    }
}

use std::collections::BTreeMap;

use comity_load::Ratio;

/// The ratio of each resource over the last second, by its name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Loads(pub(super) BTreeMap<String, Ratio>);

impl Loads {
    /// Reads the lines `comity_load_ratio{resource="R",device="D",over="1s"} N` of a metrics page.
    pub(super) fn read(page: &str) -> Self {
        Self(page.lines().filter_map(sample).collect())
    }
}

fn sample(line: &str) -> Option<(String, Ratio)> {
    let (labels, value) = line.strip_prefix("comity_load_ratio{")?.rsplit_once("} ")?;
    let label = |name: &str| {
        let (_, rest) = labels.split_once(&format!("{name}=\""))?;
        rest.split('"').next()
    };
    if label("over")? != "1s" {
        return None;
    }
    let (resource, device) = (label("resource")?, label("device")?);
    let name = if device.is_empty() { resource.to_owned() } else { format!("{resource} {device}") };
    Some((name, Ratio::of(value.trim().parse().ok()?, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_over_a_second_are_read_with_their_devices() {
        let page = "# TYPE comity_load_ratio gauge\n\
            comity_load_ratio{resource=\"processor\",device=\"\",over=\"1s\"} 0.25\n\
            comity_load_ratio{resource=\"processor\",device=\"\",over=\"1m\"} 0.75\n\
            comity_load_ratio{resource=\"disk\",device=\"vda\",over=\"1s\"} 1\n\
            comity_connections 3\n";
        let expected =
            [("disk vda".to_owned(), Ratio::FULL), ("processor".to_owned(), Ratio::of(0.25, 1.0))];
        assert_eq!(Loads::read(page), Loads(expected.into()));
    }
}

/// Returns a path without doubled slashes and dots: `//srv/./pub/` becomes `/srv/pub`. Paths
/// are bytes, not text. `..` and links are refused later, when the path is walked.
pub(super) fn plain(path: &[u8]) -> Vec<u8> {
    if !path.starts_with(b"/") {
        return path.to_vec();
    }
    let mut plain = Vec::with_capacity(path.len());
    let says = |part: &&[u8]| !part.is_empty() && *part != b".";
    let components = path.split(|byte| *byte == b'/').filter(says);
    for component in components {
        plain.push(b'/');
        plain.extend_from_slice(component);
    }
    if plain.is_empty() { b"/".to_vec() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_and_dots_do_not_matter() {
        for path in ["/srv/pub", "/srv/pub/", "//srv///pub//", "/./srv/./pub/."] {
            assert_eq!(plain(path.as_bytes()), b"/srv/pub", "{path}");
        }
        for path in ["/", "//", "/./"] {
            assert_eq!(plain(path.as_bytes()), b"/", "{path}");
        }
    }

    #[test]
    fn a_relative_path_stays_as_it_is() {
        for path in [&b""[..], b"srv/pub", b"./srv", b"\xff"] {
            assert_eq!(plain(path), path);
        }
        assert_eq!(plain(b"/\xff/../x"), b"/\xff/../x");
    }
}

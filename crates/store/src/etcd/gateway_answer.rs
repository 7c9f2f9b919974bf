//! Reads the answers of etcd's JSON gateway: another member may be able to do what one cannot.

use serde_json::{Map, Value};

/// Codes of gRPC with which a member says that it cannot answer now: it gave up waiting, it has too
/// much to do, or it has no leader.
const UNABLE: [u64; 3] = [4, 8, 14];

/// An answer of a member, or of something else at its address.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GatewayAnswer {
    /// The member did what it was asked.
    Done(Value),
    /// This member cannot do it; another one may.
    Unable(String),
    /// etcd refuses.
    Refused(String),
}

impl GatewayAnswer {
    /// Reads the status and the body of an answer. An error without a code is not from etcd.
    pub(super) fn read(status: u16, body: &[u8]) -> Self {
        let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(body) else {
            return Self::Unable(format!("its answer of status {status} is no JSON object"));
        };
        let answer = Value::Object(fields);
        let error = &answer["error"];
        if status == 200 && error.is_null() {
            return Self::Done(answer);
        }
        let texts = [error, &error["message"], &answer["message"]];
        let why = texts.into_iter().find_map(Value::as_str);
        let why = why.map_or_else(|| format!("its status is {status}"), str::to_owned);
        let codes = [&answer["code"], &error["grpc_code"], &error["code"]];
        let code = codes.into_iter().find_map(Value::as_u64);
        // A learner, which does not take part in decisions yet, serves few requests.
        let is_unable = code.is_none_or(|code| UNABLE.contains(&code)) || why.contains("learner");
        if is_unable { Self::Unable(why) } else { Self::Refused(why) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_unable(status: u16, body: &str) -> bool {
        matches!(GatewayAnswer::read(status, body.as_bytes()), GatewayAnswer::Unable(_))
    }

    #[test]
    fn another_member_is_asked_if_the_answer_is_not_of_etcd() {
        for (status, body) in [(200, "<html>"), (200, "[]"), (404, "{}"), (302, ""), (500, "{}")] {
            assert!(is_unable(status, body), "{status} {body}");
        }
    }

    #[test]
    fn another_member_is_asked_if_one_cannot_answer_now() {
        assert!(is_unable(429, r#"{ "error": "etcdserver: too many requests", "code": 8 }"#));
        assert!(is_unable(503, r#"{ "message": "etcdserver: no leader", "code": 14 }"#));
        assert!(is_unable(200, r#"{ "error": { "grpc_code": 14, "message": "no leader" } }"#));
        let learner = r#"{ "error": "etcdserver: rpc not supported for learner", "code": 9 }"#;
        assert!(is_unable(400, learner));
    }

    #[test]
    fn a_refusal_of_etcd_is_that_of_all_members() {
        let body = r#"{ "error": "etcdserver: requested lease not found", "code": 5 }"#;
        let why = "etcdserver: requested lease not found".to_owned();
        assert_eq!(GatewayAnswer::read(404, body.as_bytes()), GatewayAnswer::Refused(why));
        let done = GatewayAnswer::read(200, b"{}");
        assert_eq!(done, GatewayAnswer::Done(Value::Object(Map::new())));
    }
}

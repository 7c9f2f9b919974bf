//! Clients are introduced, confirmed and ended.

use comity_state::{CallbackAddress, ClientOwner, ExchangeId, Setclientid, Verifier};

use crate::world::{Told, World, said};

impl World {
    pub(super) fn people(&mut self, verb: &str, args: &[&str]) -> Told {
        match (verb, args) {
            ("setclientid", [name, life]) => self.setclientid(name, life),
            ("confirm", [name]) => self.confirm(name),
            ("renew", [name]) => {
                let (id, _) = self.clients[*name];
                said(self.engine.renew(self.now, id, self.caller))
            }
            ("exchange", [name, life, rest @ ..]) => self.exchange(name, life, rest),
            ("complete", [name]) => match self.client(name) {
                Some(client) => said(self.engine.reclaim_complete(self.now, &client, self.caller)),
                None => vec!["gone".into()],
            },
            ("destroy-client", [name]) => {
                let (id, _) = self.clients[*name];
                said(self.engine.destroy_clientid(self.now, id, self.caller))
            }
            ("callbacks", [name, how]) => {
                let client = self.client(name).unwrap();
                match *how {
                    "work" => self.engine.callbacks_work(&client),
                    _ => self.engine.callbacks_fail(&client),
                }
                Vec::new()
            }
            ("evict", [name]) => {
                let client = self.client(name).unwrap();
                self.engine.evict(self.now, &client);
                Vec::new()
            }
            _ => panic!("{verb} {args:?}"),
        }
    }

    fn setclientid(&mut self, name: &str, life: &str) -> Told {
        let callback = CallbackAddress { program: 1, ..CallbackAddress::default() };
        let (owner, caller) = (owner(name, life), self.caller);
        match self.engine.setclientid(self.now, Setclientid { owner, caller, callback }) {
            Ok(known) => {
                let old = self.clients.insert(name.into(), (known.clientid, known.confirm));
                let same = old.is_some_and(|(id, _)| id == known.clientid);
                vec![if same { "same clientid" } else { "new clientid" }.into()]
            }
            Err(error) => vec![error.to_string()],
        }
    }

    fn confirm(&mut self, name: &str) -> Told {
        let announced = self.clients[name];
        said(self.engine.setclientid_confirm(self.now, announced, self.caller))
    }

    fn exchange(&mut self, name: &str, life: &str, rest: &[&str]) -> Told {
        let update = rest.contains(&"update");
        let (owner, caller) = (owner(name, life), self.caller);
        match self.engine.exchange_id(self.now, ExchangeId { owner, caller, update }) {
            Ok(known) => {
                let entry = (known.clientid, Verifier::default());
                let old = self.clients.insert(name.into(), entry);
                let same = old.is_some_and(|(id, _)| id == known.clientid);
                let id = if same { "same clientid" } else { "new clientid" };
                let confirmed = if known.confirmed { ", confirmed" } else { "" };
                vec![format!("{id}, next sequence {}{confirmed}", known.sequenceid)]
            }
            Err(error) => vec![error.to_string()],
        }
    }
}

fn owner(name: &str, life: &str) -> ClientOwner {
    let mut verifier = [0; 8];
    verifier[..life.len()].copy_from_slice(life.as_bytes());
    ClientOwner { verifier: Verifier(verifier), id: name.as_bytes().into() }
}
